"""What commands share that talk to a service: choosing the task, showing what it says, the exit code of a verdict.

Results go to standard output, signs of life to standard error. Everything that a service sends is made safe to print.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.cli.files_to_write import make_folder_for
from grader.cli.printing import emit_json, stdout_console
from grader.client import (
    AttemptAnswer,
    EventAnswer,
    ReadingAnswer,
    Service,
    SubmissionAnswer,
    TaskAnswer,
    follow,
    known,
)
from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, UsageError
from grader.model.finding import Severity
from grader.model.submission import Submission
from grader.report.safe_text import one_line


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


def check(
    service: Service, task: TaskAnswer, submission: Submission, *, needed: bool
) -> ReadingAnswer | None:
    """What reading shows for this task; None where the service tells nothing of it and it is not `needed`."""
    try:
        return service.check(task.id, submission)
    except UsageError:
        # A service that checks nothing now, or is too old for it, may take the script all the same.
        if needed:
            raise
        return None


def print_reading(reading: ReadingAnswer, submission: Submission) -> None:
    """What the text shows, before anything runs."""
    from grader.report.findings.readiness import print_readiness
    from grader.report.terminal.terminal_cards import print_findings

    console = stdout_console()
    # As `grader lint` tells it: where items follow, they say what the text comes to.
    if reading.findings or not reading.steps:
        print_findings(reading.findings, submission, console)
    if reading.steps:
        print_readiness(reading.steps, console, reading.findings)
    console.print()


def conclude_check(reading: ReadingAnswer, *, as_json: bool) -> int:
    """The exit code of a script that was only read, and with `as_json` what reading showed."""
    if as_json:
        emit_json({"schema": 1, **_reading_out(reading)})
    wrong = any(one.severity is Severity.ERROR for one in reading.findings)
    lacking = any(step.lacking for step in reading.steps)
    return EXIT_NOT_ACCEPTED if wrong or lacking else EXIT_ACCEPTED


def print_handed(service: Service, task: TaskAnswer, handed: SubmissionAnswer) -> None:
    """What the service took."""
    console = stdout_console()
    again = ", as before" if handed.repeated else ""
    late = f", {handed.late_days} days late" if handed.late_days > 1 else ", late" if handed.late_days else ""
    course, name = one_line(task.course), one_line(task.name)
    console.print(f"attempt {handed.attempt_id} at {name} ({course}){again}{late}", markup=False)
    console.print(f"{service.url}/attempts/{handed.attempt_id}", markup=False, soft_wrap=True)
    if handed.state == "queued":
        console.print(f"{_queued(handed.position, handed.starts_in_s)}")
    if handed.attempts_left:
        console.print(f"attempts: {one_line(handed.attempts_left)}", markup=False)


def emit_handed(service: Service, task: TaskAnswer, handed: SubmissionAnswer, reading: ReadingAnswer) -> None:
    """The same for programs, with what reading the script shows."""
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
            "attempts_left": handed.attempts_left,
            **_reading_out(reading),
        }
    )


def _reading_out(reading: ReadingAnswer) -> dict[str, Any]:
    from grader.report.findings.readiness import steps_out
    from grader.report.json_report import finding_out

    return {
        "findings": [finding_out(one) for one in reading.findings],
        "steps": steps_out(reading.steps),
    }


def watch(service: Service, attempt_id: int) -> AttemptAnswer:
    """Follow an attempt to its end, with signs of life; how it ended."""
    from grader.cli.live import LiveView
    from grader.run.runtime import Progress

    with LiveView(sys.stderr) as view:
        last, line = None, ""
        for sign in follow(service, attempt_id):
            if isinstance(sign, EventAnswer):
                line = _event_line(sign) or line
            else:
                last = sign
                view.progress(Progress(_phase(sign), 0.0, line=line))
    assert last is not None, "following ends with how it ended"
    return last


def print_attempts(service: Service, attempts: Sequence[AttemptAnswer], *, as_json: bool) -> None:
    """Attempts, a line each."""
    if as_json:
        emit_json({"schema": 1, "attempts": [attempt.fields for attempt in attempts]})
        return
    for attempt in attempts:
        print(attempt_line(service, attempt))
        print_question(service, attempt)
    if not attempts:
        print("Nothing was handed in yet: `grader submit TASK FILE`.")


def latest_judged(service: Service) -> int:
    """The number of one's latest attempt that was judged; regrades aside.

    Raises:
        UsageError: there is none among one's latest attempts.
    """
    for attempt in service.attempts():
        if attempt.state == "judged" and attempt.fields.get("lane") != "regrade":
            return attempt.id
    raise UsageError("none of your latest attempts is judged: `grader status` lists them")


def put(text: str, out: Path | None) -> None:
    """Write a text to a file, or to standard output.

    Raises:
        UsageError: the file cannot be written.
    """
    if out is None:
        sys.stdout.write(text)
        return
    make_folder_for(out, "--out")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    print(f"written to {out}", file=sys.stderr)


def print_question(service: Service, attempt: AttemptAnswer) -> None:
    """What an instructor asked before deciding about an attempt, and where to answer; nothing where nobody did."""
    if attempt.question:
        print(f"        An instructor asks you: {one_line(' '.join(attempt.question.split()))}")
        print(f"        Answer at {service.url}/attempts/{attempt.id}#question")


def attempt_line(service: Service, attempt: AttemptAnswer) -> str:
    """How an attempt stands, in one line."""
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
    return one_line(attempt.outcome or attempt.verdict)


def _queued(position: int | None, starts_in_s: float | None) -> str:
    text = "queued" if position is None else f"queued, place {position}"
    if starts_in_s is not None:
        # As a page says it.
        text += ", starts at once" if starts_in_s < 1 else f", starts in about {_minutes(starts_in_s)}"
    return text


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _event_line(event: EventAnswer) -> str:
    """An event as a line beside the phase; "" where the phase says it all."""
    data = event.data
    if event.kind == "epoch":
        of = f" of {data['of']}" if data.get("of") else ""
        loss = f" loss {data['loss']:.4g}" if isinstance(data.get("loss"), int | float) else ""
        return one_line(f"epoch {data.get('epoch')}{of}{loss}")
    if event.kind == "log":
        lines = [line for line in str(data.get("text", "")).splitlines() if line.strip()]
        return one_line(f"rank {data.get('rank')}: {lines[-1]}") if lines else ""
    return ""
