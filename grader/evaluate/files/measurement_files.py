"""What the scorer and the clock measured, as JSON files: kept, so that judging can be repeated."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from grader.errors import InfraError
from grader.files import write_whole
from grader.json_reader import read_value
from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.metric import ACCURACY

Stored = TypeVar("Stored", bound=Evaluation | Calibration)


def write_stored(path: Path, value: Evaluation | Calibration) -> None:
    """Write it whole or not at all, with sorted keys and the same bytes for the same content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(value), indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_stored(path: Path, kind: type[Stored]) -> Stored | None:
    """Read one of this kind; None where there is no file.

    Raises:
        InfraError: the file is damaged.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return read_value(kind, _renamed(json.loads(text)))
    except (ValueError, RecursionError) as error:
        cure = " Remove it; the next run makes another." if kind is Calibration else ""
        raise InfraError(f"{path} is damaged: {error}.{cure}") from error


def _renamed(found: Any) -> Any:
    """What was stored when accuracy was the only metric and every sample an image, by the names of today."""
    if not isinstance(found, dict):
        return found
    if "one_rank_images_per_s" in found:
        found["one_rank_samples_per_s"] = found.pop("one_rank_images_per_s")
    for style in _objects(found.get("styles")):
        if "accuracies" in style:
            told = style.pop("accuracies")
            style["scores"] = {ACCURACY.name: told} if told else {}
    for other in _objects(found.get("others")):
        if "accuracy" in other:
            other["value"] = other.pop("accuracy")
    return found


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
