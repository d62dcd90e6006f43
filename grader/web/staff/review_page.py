"""The page on which staff weigh an attempt: source with findings in the margin, remarks, override, what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import HTMLResponse

from grader.model.grade import Grade, Verdict
from grader.model.notebook_lines import told_place
from grader.model.submission import Submission
from grader.report.audience import Audience, for_audience
from grader.report.findings.cards import title_of
from grader.report.html.explanation_pages import rule_pages
from grader.report.json_report import from_json
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt, files_of
from grader.store.attempts.submissions import source_of
from grader.store.courses.courses import course, course_task
from grader.store.database import Store
from grader.store.events import LIVE_KINDS, StoredEvent, events_of
from grader.store.grading import reviews
from grader.store.grading.comment_library import entries_of
from grader.store.grading.credits import people_of
from grader.store.grading.grades import grade_of
from grader.store.grading.held_attempts import held_since
from grader.store.grading.regrade_requests import requests_about
from grader.store.people.people import names_of
from grader.web.security.access import Visitor, not_found
from grader.web.service import WebService
from grader.web.staff.annotated_source import annotated_files, numbered_findings
from grader.web.staff.form import SubmittedForm
from grader.web.staff.held_reasons import held_reasons


@dataclass(frozen=True, slots=True)
class ReviewForm:
    """What the page's forms hold; `line` (`path:number`): the place that a new remark is about."""

    form: SubmittedForm = field(default_factory=lambda: SubmittedForm({}, {}))
    line: str = ""


def review_page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    facts: StoredAttempt,
    typed: ReviewForm,
    status_code: int = 200,
) -> HTMLResponse:
    """The page, with the forms empty or as they were."""
    course_facts = course(service.store, facts.course_id)
    if course_facts is None:
        raise not_found()
    # Where a rule deleted the scripts, people may still decide and comment.
    submission = source_of(service.store, facts.id) or Submission(facts.submission, ())
    grade = _grade(service.store, facts)
    remarks = reviews.comments_of(service.store, facts.id)
    titles = {code: title_of(code, page) for code, page in rule_pages().items()}
    found = (
        ()
        if grade is None
        else numbered_findings(grade.findings, for_audience(grade, Audience.LEARNER).findings, titles)
    )
    overrides = reviews.overrides_of(service.store, facts.id)
    events = [one for one in events_of(service.store, facts.id, limit=2000) if one.kind not in LIVE_KINDS]
    path, number = line_of(service.store, facts, typed.line)
    held = held_since(service.store, [facts.id]).get(facts.id)
    task = course_task(service.store, facts.course_task_id)
    return service.render(
        request,
        "staff/review.html.j2",
        visitor=visitor,
        status_code=status_code,
        zone=course_facts.zone,
        course=course_facts,
        at=f"/courses/{course_facts.id}",
        attempt=facts,
        task_title=facts.task if task is None else task.terms.title,
        grades=visitor.grades(facts.course_id),
        grade=grade,
        result=results_of(service.store, [facts.id]).get(facts.id),
        held_since=held,
        reasons=held_reasons(grade) if facts.verdict is Verdict.HELD and grade is not None else (),
        found=found,
        listings=annotated_files(submission, found, remarks),
        told_place=partial(told_place, submission),
        remarks=remarks,
        library=entries_of(service.store, facts.course_id),
        requests=requests_about(service.store, facts.id),
        overrides=overrides,
        holding=overrides[0] if overrides and overrides[0].withdrawn_at is None else None,
        events=events,
        actors=_actors(service.store, facts, events),
        files=files_of(service.store, facts.id),
        form=typed.form,
        line=f"{path}:{number}" if path is not None else typed.form.text("line", most=320),
    )


def line_of(store: Store, facts: StoredAttempt, place: str) -> tuple[str | None, int | None]:
    """A place as `path:number`, where the submission has such a line."""
    path, _, number = place.rpartition(":")
    submission = source_of(store, facts.id)
    if submission is None or not (number.isascii() and number.isdigit()) or len(number) > 6:
        return None, None
    there = {file.path for file in submission.files}
    if path not in there or not 1 <= int(number) <= len(submission.lines(path)):
        return None, None
    return path, int(number)


def _grade(store: Store, facts: StoredAttempt) -> Grade | None:
    stored = grade_of(store, facts.id)
    if stored is None:
        return None
    try:
        return from_json(stored.document)
    except ValueError:
        # Of a schema that is no longer read; verdict and points stand in the table all the same.
        return None


def _actors(store: Store, facts: StoredAttempt, events: Sequence[StoredEvent]) -> dict[int, Any]:
    """Who did what, by number; whose attempt it is by their pseudonym where the task is graded anonymously."""
    names = names_of(store, {one.actor_id for one in events if one.actor_id is not None})
    return names | (dict.fromkeys(people_of(store, facts.id), facts.person) if facts.anonymous else {})
