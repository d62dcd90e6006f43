"""Evaluations as JSON files in an attempt's folder: what the scorer measured, kept so that judging can be repeated."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.errors import InfraError
from grader.files import write_whole
from grader.json_reader import read_json
from grader.model.evaluation import Evaluation


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file whole or not at all, with sorted keys and the same bytes for the same content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n")


def write_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Store an evaluation."""
    write_json(path, asdict(evaluation))


def read_evaluation(path: Path) -> Evaluation | None:
    """Read a stored evaluation; None where the run was never scored.

    Raises:
        InfraError: the file is damaged.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return read_json(Evaluation, text)
    except ValueError as error:
        raise InfraError(f"{path} is damaged: {error}") from error
