"""The shape of an export, and how exports are found: by folder, without a list.

An export is one module below `report/exports/`; its name is the format's, and the option's that asks for it: `--junit`.
It holds

    HELP = "write the outcome as JUnit XML, too"
    def of_grade(grade: Grade, audience: Audience) -> str: ...              # optional; one judged attempt
    def of_verification(cases: Sequence[VerifyCase]) -> str: ...            # optional; what `grader verify` found
    def of_lint(scripts: Sequence[LintedScript]) -> str: ...                # optional; scripts that were read

The command line imports all of them to know its options, so what is heavy is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from grader.plugins.loader import load
from grader.plugins.shape import Constant, Function, Shape, of_type
from grader.plugins.sources import Sources

if TYPE_CHECKING:
    from grader.checks.lint import LintedScript
    from grader.model.grade import Grade
    from grader.model.verify_case import VerifyCase
    from grader.report.audience import Audience

SHAPE = Shape(
    what="an export",
    constants=(Constant("HELP", 'HELP = "write the outcome as JUnit XML, too"', of_type(str, "a text")),),
    functions=(
        Function("of_grade", {"grade": "Grade", "audience": "Audience"}, ("str",), required=False),
        Function("of_verification", {"cases": "Sequence[VerifyCase]"}, ("str",), required=False),
        Function("of_lint", {"scripts": "Sequence[LintedScript]"}, ("str",), required=False),
    ),
    file_example="junit.py",
)


@dataclass(frozen=True, slots=True)
class Export:
    """One format; each function makes the whole text of a file, and is None where the format has no such file."""

    name: str
    help: str
    of_grade: Callable[[Grade, Audience], str] | None
    of_verification: Callable[[Sequence[VerifyCase]], str] | None
    of_lint: Callable[[Sequence[LintedScript]], str] | None


@cache
def load_exports() -> tuple[Export, ...]:
    """All formats by name."""
    return tuple(
        Export(p.name, p.get("HELP"), p.get("of_grade"), p.get("of_verification"), p.get("of_lint"))
        for p in load(Sources("grader.report.exports"), SHAPE)
    )
