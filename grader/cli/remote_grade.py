"""The grade of an attempt on a service, as commands end with it: what counts, beside what was judged.

Lateness and an instructor's decision are the service's to tell; the grade that it keeps is the judge's alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.cli.output import unread_is_no_fault
from grader.cli.printing import emit_json, stdout_console
from grader.cli.remote import attempt_line, print_question, put
from grader.client import AttemptAnswer, Service
from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR, EXIT_NOT_ACCEPTED, UsageError
from grader.model.grade import Verdict
from grader.model.submission import Submission

if TYPE_CHECKING:
    from grader.model.grade import Grade


def conclude(
    service: Service,
    attempt: AttemptAnswer,
    *,
    as_json: bool,
    out: Path | None = None,
    submission: Submission | None = None,
) -> int:
    """Print how an attempt ended, write its report where that was asked for, and return the verdict's exit code."""
    if attempt.state == "judged" and attempt.verdict is not None:
        text = service.grade(attempt.id)
        # First of all, as nobody may be there to read what is printed (`| head`).
        if out is not None:
            put(service.report(attempt.id), out)
        with unread_is_no_fault():
            if as_json:
                sys.stdout.write(grade_json(text, attempt))
            else:
                print()
                print_grade(text, attempt, submission)
                print_question(service, attempt)
                print(f"\nreport  {service.url}/attempts/{attempt.id}")
    elif as_json:
        emit_json({"schema": 1, **attempt.fields})
    else:
        print(attempt_line(service, attempt))
    return exit_code(attempt)


def print_grade(text: str, attempt: AttemptAnswer, submission: Submission | None = None) -> None:
    """A grade that the service sent, as text that begins with what it counts as."""
    from grader.report.terminal.attempt_text import print_grade as print_in_terminal

    grade = _grade(text)
    script = submission or Submission(grade.submission, ())
    print_in_terminal(grade, script, stdout_console(), attempt.result)


def grade_json(text: str, attempt: AttemptAnswer) -> str:
    """A grade that the service sent, with what counts as `verdict` and `points` and the judge's as `judged_…`."""
    result, judged = attempt.result, _document(text)
    if result is None:
        return text
    counts = {
        "verdict": result.verdict.value,
        "points": result.points,
        "judged_verdict": result.judged_verdict.value,
        "judged_points": result.judged_points,
        "late_days": result.late_days,
        "overridden": result.decided,
        "outcome": attempt.outcome,
    }
    document = {
        "schema": judged.get("schema"),
        **counts,
        **{k: v for k, v in judged.items() if k not in counts},
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def exit_code(attempt: AttemptAnswer) -> int:
    """That of the verdict that counts."""
    if attempt.state == "failed" or attempt.verdict == Verdict.JUDGE_ERROR:
        return EXIT_INFRA_ERROR
    if attempt.state == "judged" and attempt.verdict in (None, Verdict.ACCEPTED):
        # Not told before the due date: it was judged, and that is all there is to know.
        return EXIT_ACCEPTED
    return EXIT_NOT_ACCEPTED


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the service sent no grade ({error})") from None
    if not isinstance(found, dict):
        raise UsageError("the service sent no grade")
    return found


def _grade(text: str) -> Grade:
    from grader.report.json_report import from_json

    try:
        return from_json(text)
    except ValueError as error:
        raise UsageError(
            f"the service sent no grade that this version can read ({error}): --json shows it"
        ) from None
