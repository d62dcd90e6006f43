"""A learner's text, read where it can keep nobody waiting: by a reader, within limits of time and memory.

Whatever is in a text, reading it gives an answer. Past the limits that is a syntax problem like any other, which says
what was not enough, so that the text is refused where it is handed in, and told of where it is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from grader.catalog.submissions.scripts import NamedScript
from grader.checks.lint import LintedScript, lint
from grader.checks.source.script import syntax_problem
from grader.checks.source.syntax.problem import CHECKED, SyntaxProblem
from grader.model.finding import Finding
from grader.model.submission import SourceFile, Submission
from grader.readers import OverLimitError, ReadingLimits, read

WAITED_FOR = ReadingLimits(cpu_s=3.0, wall_s=4.2)
"""While somebody waits for the answer. A script of 300 lines takes a tenth of a second, the longest that somebody wrote
by hand two."""
AT_COMMAND = ReadingLimits(cpu_s=3.0, wall_s=60.0)
"""The same where nobody else waits."""
BEFORE_RUN = ReadingLimits(cpu_s=12.0, wall_s=300.0)
"""Before a run: what was taken when it was handed in must not be refused because this machine is slower."""
LONG_BYTES = 64 << 10
"""A text below cannot take long to be looked through, and most of all that are handed in are a tenth of it."""

_FUNCTION = re.compile(r"[ \t]*(async[ \t]+)?def[ \t]")
_T = TypeVar("_T")


def read_within(
    limits: ReadingLimits,
    submission: Submission,
    work: Callable[..., _T],
    *given: Any,
    otherwise: Callable[[SyntaxProblem], _T],
) -> _T:
    """What `work(*given)` makes of a submission, or `otherwise` of the reason why it cannot be read.

    Raises:
        BusyError: the machine has too much else to do.
    """
    try:
        return read(work, *given, limits=limits)
    except OverLimitError as error:
        return otherwise(_problem(submission, error))


def problem_within(limits: ReadingLimits, submission: Submission) -> SyntaxProblem | None:
    """Why a submission cannot be run, or cannot be read within limits; None where it can.

    Raises:
        BusyError: the machine has too much else to do.
    """
    return read_within(limits, submission, _problem_of, submission, otherwise=lambda problem: problem)


def lint_within(limits: ReadingLimits, submission: Submission) -> tuple[Finding, ...]:
    """As `lint`; of a text that cannot be read within limits that alone.

    Raises:
        BusyError: the machine has too much else to do.
    """
    return read_within(limits, submission, lint, submission, otherwise=lambda problem: (problem.finding(),))


def lint_script_within(
    limits: ReadingLimits, lint_one: Callable[[NamedScript], LintedScript], source: NamedScript
) -> LintedScript:
    """What `lint_one` finds in a script; of one that cannot be read within limits that alone.

    Raises:
        BusyError: the machine has too much else to do.
    """
    if source.problem:
        return lint_one(source)
    return read_within(
        limits,
        source.submission,
        lint_one,
        source,
        otherwise=lambda problem: LintedScript(source, (problem.finding(),)),
    )


def warm_reader() -> None:
    """Load what a reader needs for a script."""
    lint(Submission("warm", (SourceFile("train.py", "import torch\n"),)))


def is_long(submission: Submission) -> bool:
    """Whether reading it may take as long as the limits allow."""
    return sum(len(file.text) for file in submission.files) > LONG_BYTES


def _problem_of(submission: Submission) -> SyntaxProblem | None:
    problem = syntax_problem(submission)
    if problem is None and is_long(submission):
        # Nothing is told of what the rules find: only that they come to an end with it.
        lint(submission)
    return problem


def _problem(submission: Submission, error: OverLimitError) -> SyntaxProblem:
    path = error.at or max(submission.files, key=lambda file: len(file.text)).path
    text = submission.text(path) or ""
    lines = text.split("\n")
    if not error.at:
        # All files were read: what took so long is what follows their values and calls.
        num_functions = sum(1 for line in lines if _FUNCTION.match(line))
        functions = f" with {num_functions:,} functions" if num_functions > 1 else ""
        what = f"it has {len(lines):,} lines{functions}"
        return SyntaxProblem.of_unread(path, error.limit, what, stage=CHECKED)
    longest = max(len(line) for line in lines)
    what = f"it has {len(text):,} characters in {len(lines):,} lines, the longest of {longest:,}"
    return SyntaxProblem.of_unread(path, error.limit, what)
