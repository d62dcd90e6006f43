"""Evaluations as JSON files in an attempt's folder: what the scorer measured, kept so that judging can be repeated."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.errors import InfraError
from grader.model.evaluation import Answer, ArtifactProblem, Evaluation, ReportedMetrics


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file whole or not at all, with sorted keys and the same bytes for the same content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, sort_keys=True, allow_nan=False)
        file.write("\n")
        os.fchmod(descriptor, 0o644)
    Path(temporary).replace(path)


def evaluation_to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """JSON-able form."""
    return asdict(evaluation)


def evaluation_from_dict(fields: dict[str, Any]) -> Evaluation:
    """Inverse of `evaluation_to_dict`; raises KeyError, TypeError or ValueError for anything else."""
    problem, reported = fields["problem"], fields["reported"]
    return Evaluation(
        **{
            **fields,
            "problem": None if problem is None else ArtifactProblem(problem),
            "sums": tuple(fields["sums"]),
            "reported": None
            if reported is None
            else ReportedMetrics(tuple(dict(e) for e in reported["epochs"])),
            # Evaluations of earlier versions have none.
            "answers": {name: Answer(**answer) for name, answer in fields.get("answers", {}).items()},
        }
    )


def write_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Store an evaluation."""
    write_json(path, evaluation_to_dict(evaluation))


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
        return evaluation_from_dict(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InfraError(f"{path} is damaged: {error}") from error
