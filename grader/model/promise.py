"""A task's own submission and what it promises to show: the verdict of its folder and the codes of its header."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from grader.model.finding import Location
from grader.model.submission import Submission


@dataclass(frozen=True, slots=True)
class Marker:
    """A line that a finding must point at, marked `# <- CODE` in the file."""

    code: str
    where: Location


@dataclass(frozen=True, slots=True)
class PromisedSubmission:
    """One entry of `tasks/<task>/submissions/<verdict>/`.

    Attributes:
        path: the script, its patch, or the folder.
        name: `<verdict>/<stem>`, unique within the task.
        verdict: name of the folder, one of the verdicts of `model.grade`.
        codes: codes of the findings it must cause, exactly, sorted; empty for clean ones.
        markers: lines that findings of a code must point at, in file order.
        submission: what is handed in; of a patch the whole script that it makes.
        points: fewest and most points it must earn, both included; None where nothing is promised.
        base: the script that a patch changes; None for what is whole.
    """

    path: Path
    name: str
    verdict: str
    codes: tuple[str, ...]
    markers: tuple[Marker, ...]
    submission: Submission = field(repr=False)
    points: tuple[float, float] | None = None
    base: Path | None = None
