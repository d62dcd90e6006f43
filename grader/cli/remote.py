"""What commands share that talk to a service: choosing the task, showing what it says, the exit code of a verdict.

Results go to standard output, signs of life to standard error. Everything that a service sends is made safe to print.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.live import LiveView
from grader.cli.printing import emit_json, stdout_console
from grader.client import AttemptAnswer, EventAnswer, Service, SubmissionAnswer, TaskAnswer, follow, known
from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR, EXIT_NOT_ACCEPTED, UsageError
from grader.model.grade import Verdict
from grader.model.submission import Submission
from grader.report.safe_text import one_line
from grader.run.runtime import Progress

if TYPE_CHECKING:
    from grader.model.grade import Grade


def service() -> Service:
    """The service that one is signed in to; says on standard error when it has to be waited for."""

    def waiting(seconds: float, why: str) -> None:
        print(f"grader: {why}; again in {max(1, round(seconds))} s", file=sys.stderr, flush=True)

    return Service(known(), waiting=waiting)


def find_task(service: Service, name: str, course: str | None) -> TaskAnswer:
    """The task of that name among one's courses.

    Raises:
        UsageError: there is none, or several courses set it and none was named.
    """
    tasks = service.tasks(course)
    found = [task for task in tasks if task.name == name]
    if not found:
        there = ", ".join(dict.fromkeys(one_line(task.name) for task in tasks)) or "no task at all"
        where = f"course {course}" if course else "your courses"
        raise UsageError(f"{where} set no task `{name}`; there is {there}")
    if len({task.course_id for task in found}) > 1:
        names = ", ".join(one_line(task.course) for task in found)
        raise UsageError(f"`{name}` is set by several courses: say --course with one of {names}")
    return found[0]


def print_handed(
    service: Service, task: TaskAnswer, handed: SubmissionAnswer, submission: Submission
) -> None:
    """What the service took, and what reading the script shows."""
    from grader.report.terminal import print_findings

    console = stdout_console()
    again = ", as before" if handed.repeated else ""
    late = f", {handed.late_days} days late" if handed.late_days > 1 else ", late" if handed.late_days else ""
    course, name = one_line(task.course), one_line(task.name)
    console.print(f"attempt {handed.attempt_id} at {name} ({course}){again}{late}", markup=False)
    console.print(f"{service.url}/attempts/{handed.attempt_id}", markup=False, soft_wrap=True)
    console.print()
    if handed.findings:
        print_findings(handed.findings, submission, console)
    else:
        console.print("Reading the script shows nothing wrong; the run has the last word.")
    if handed.state == "queued":
        console.print(f"\n{_queued(handed.position, handed.starts_in_s)}")


def emit_handed(service: Service, task: TaskAnswer, handed: SubmissionAnswer) -> None:
    """The same for programs."""
    from grader.report.json_report import finding_out

    emit_json(
        {
            "schema": 1,
            "attempt": handed.attempt_id,
            "url": f"{service.url}/attempts/{handed.attempt_id}",
            "course": task.course,
            "task": task.name,
            "state": handed.state,
            "repeated": handed.repeated,
            "late_days": handed.late_days,
            "findings": [finding_out(one) for one in handed.findings or ()],
        }
    )


def watch(service: Service, attempt_id: int) -> AttemptAnswer:
    """Follow an attempt to its end, with signs of life; how it ended."""
    with LiveView(sys.stderr) as view:
        last, line = None, ""
        for sign in follow(service, attempt_id):
            if isinstance(sign, EventAnswer):
                line = _told(sign) or line
            else:
                last = sign
                view.progress(Progress(_phase(sign), 0.0, line=line))
    assert last is not None, "following ends with how it ended"
    return last


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
        if as_json:
            sys.stdout.write(text)
        else:
            print()
            print_grade(text, submission)
            print(f"\nreport  {service.url}/attempts/{attempt.id}")
        if out is not None:
            put(service.report(attempt.id), out)
    elif as_json:
        emit_json({"schema": 1, **attempt.fields})
    else:
        print(_line(service, attempt))
    return _exit_code(attempt)


def print_grade(text: str, submission: Submission | None = None) -> None:
    """A grade that the service sent, as text."""
    from grader.report.terminal import print_grade as print_in_terminal

    grade = _grade(text)
    print_in_terminal(grade, submission or Submission(grade.submission, ()), stdout_console())


def print_attempts(service: Service, attempts: Sequence[AttemptAnswer], *, as_json: bool) -> None:
    """Attempts, a line each."""
    if as_json:
        emit_json({"schema": 1, "attempts": [attempt.fields for attempt in attempts]})
        return
    for attempt in attempts:
        print(_line(service, attempt))
    if not attempts:
        print("Nothing was handed in yet: `grader submit TASK FILE`.")


def put(text: str, out: Path | None) -> None:
    """Write a text to a file, or to standard output.

    Raises:
        UsageError: the file cannot be written.
    """
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    print(f"written to {out}", file=sys.stderr)


def _grade(text: str) -> Grade:
    from grader.report.json_report import from_json

    try:
        return from_json(text)
    except ValueError as error:
        raise UsageError(
            f"the service sent no grade that this version can read ({error}): --json shows it"
        ) from None


def _exit_code(attempt: AttemptAnswer) -> int:
    if attempt.state == "failed" or attempt.verdict == Verdict.JUDGE_ERROR:
        return EXIT_INFRA_ERROR
    if attempt.state == "judged" and attempt.verdict in (None, Verdict.ACCEPTED):
        # Not told before the due date: it was judged, and that is all there is to know.
        return EXIT_ACCEPTED
    return EXIT_NOT_ACCEPTED


def _line(service: Service, attempt: AttemptAnswer) -> str:
    what = f"{attempt.id:>6}  {one_line(attempt.task)}  {one_line(attempt.submission)}"
    return f"{what}  {_phase(attempt)}  {service.url}/attempts/{attempt.id}"


def _phase(attempt: AttemptAnswer) -> str:
    """How it stands, in a few words."""
    if attempt.state == "queued":
        return _queued(attempt.position, attempt.starts_in_s)
    if attempt.state == "running":
        return one_line(attempt.phase or "running")
    if attempt.state != "judged":
        return {"failed": "the grader failed, and staff was told", "cancelled": "cancelled"}.get(
            attempt.state, one_line(attempt.state)
        )
    if attempt.verdict is None:
        until = f" until {one_line(attempt.hidden_until)}" if attempt.hidden_until else ""
        return f"judged; the result is not told{until}"
    points = f", {attempt.points:g} of {attempt.max_points:g} points" if attempt.points is not None else ""
    return f"{one_line(attempt.verdict)}{points}"


def _queued(position: int | None, starts_in_s: float | None) -> str:
    text = "queued" if position is None else f"queued, place {position}"
    if starts_in_s is not None:
        text += f", starts in about {_minutes(starts_in_s)}"
    return text


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _told(event: EventAnswer) -> str:
    """An event as a line beside the phase; "" where the phase says it all."""
    data = event.data
    if event.kind == "epoch":
        of = f" of {data['of']}" if data.get("of") else ""
        figures = [
            f"{name} {data[name]:.4g}"
            for name in ("loss", "accuracy")
            if isinstance(data.get(name), int | float)
        ]
        return one_line(f"epoch {data.get('epoch')}{of} {' '.join(figures)}".strip())
    if event.kind == "log":
        lines = [line for line in str(data.get("text", "")).splitlines() if line.strip()]
        return one_line(f"rank {data.get('rank')}: {lines[-1]}") if lines else ""
    return ""
