"""A task's own submission and what it promises to show: the verdict of its folder and the codes of its header."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.model.finding import Location


@dataclass(frozen=True, slots=True)
class Marker:
    """A line that a finding must point at, marked `# <- CODE` in the file."""

    code: str
    where: Location


@dataclass(frozen=True, slots=True)
class PromisedSubmission:
    """One entry of `tasks/<task>/submissions/<verdict>/`.

    Attributes:
        path: the file or folder.
        name: `<verdict>/<stem>`, unique within the task.
        verdict: name of the folder, one of the verdicts of `model.grade`.
        codes: codes of the findings it must cause, exactly, sorted; empty for clean ones.
        markers: lines that findings of a code must point at, in file order.
        points: fewest and most points it must earn, both included; None where nothing is promised.
    """

    path: Path
    name: str
    verdict: str
    codes: tuple[str, ...]
    markers: tuple[Marker, ...]
    points: tuple[float, float] | None = None
