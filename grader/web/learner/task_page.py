"""What a task's page shows, however one came to it: by its address, after a refused upload, after a mere check."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from grader.catalog.submissions.learner_files import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from grader.evaluate.points.scale import ScaleConditions, scale
from grader.model.submission import Submission
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.limits import UNRELEASED, LateBank, Limit, Refusal, late_factor
from grader.store.courses.grading_rules import TaskGrading, task_gradings
from grader.store.grading.progress import OwnTask, progress
from grader.translation import counted, gettext
from grader.web.languages import LANGUAGES, read_languages
from grader.web.learner.asked_figures import asked_figures
from grader.web.learner.attempts_left import attempts_left
from grader.web.learner.late_days_left import late_days_left
from grader.web.learner.open_task import open_task
from grader.web.learner.points_chart import points_chart
from grader.web.learner.source_findings import source_findings
from grader.web.security.access import TaskInCourse, Visitor, not_found
from grader.web.service import WebService
from grader.web.templating import when
from grader.web.upload.intake import explain_refusal

_HISTORY = 50


@dataclass(frozen=True, slots=True)
class HandInForm:
    """What the form shows when it comes back.

    Attributes:
        checked: a script that was only to be checked.
        problem: why an upload was not taken, "" where it was; refusal: the limit that stood in its way, if one did.
        pasted: text that was typed into it.
    """

    checked: Submission | None = None
    problem: str = ""
    refusal: Refusal | None = None
    pasted: str = ""


def task_page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    found: TaskInCourse,
    form: HandInForm = HandInForm(),
    *,
    status_code: int = 200,
) -> Response:
    """The page, with the form empty or as it was; `request` to `found` are those of the route."""
    person_id, course_id = visitor.account.id, found.course.id
    owned = progress(service.store, course_id, person_id, with_drafts=visitor.reads(course_id))
    own = next((one for one in owned if one.task.id == found.task.id), None)
    if own is None:
        raise not_found()
    wanted = AttemptFilter(course_task_id=found.task.id, person_id=person_id)
    history = [one for one in attempts(service.store, wanted, limit=_HISTORY) if one.counts]
    # What a task asks is shown when it opens, or when one begins an exam; staff see it before.
    not_open = own.refusal is not None and own.refusal.limit is Limit.NOT_OPEN
    task = open_task(service, visitor, found)
    profile = None if task is None else task.profile(found.task.profile)
    hidden = own.hidden_until is not None
    shown = [] if hidden else [one.id for one in history]
    results = results_of(service.store, shown)
    return service.render(
        request,
        "task.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=found.course,
        own=own,
        terms=found.task.terms,
        task=task,
        statement=None if task is None else task.told_in(read_languages(request)),
        not_open=not_open,
        to_begin=own.refusal is not None and own.refusal.limit is Limit.EXAM_NOT_BEGUN,
        unreleased=UNRELEASED,
        profile=profile,
        items=() if task is None or profile is None else scale(task, ScaleConditions.planned(task, profile)),
        asked_figures=() if task is None else asked_figures(task),
        here=f"/courses/{course_id}/tasks/{found.task.id}",
        refused="" if own.refusal is None else _refusal_text(own.refusal),
        left=attempts_left(own),
        late=_late(own, found.course.late_bank),
        late_days_left=late_days_left(found.course, owned),
        history=history,
        results=results,
        chart=None
        if hidden
        else points_chart([(one.number, told) for one in history if (told := results.get(one.id))]),
        found=None if form.checked is None else source_findings(form.checked, task, found.task.profile),
        problem=form.problem or _refused_now(form, own),
        pasted=form.pasted,
        has_leaderboard=task_gradings(service.store, course_id).get(found.task.id, TaskGrading()).leaderboard
        is not None,
        languages=LANGUAGES,
        max_file_bytes=MAX_FILE_BYTES,
        max_total_bytes=MAX_TOTAL_BYTES,
        max_upload_bytes=service.max_upload_bytes,
    )


def _late(own: OwnTask, bank: LateBank | None) -> str:
    """What handing in now costs after the due date; "" before it, and where nothing is taken any more."""
    terms = own.task.terms
    if not own.late_days or (own.refusal is not None and own.refusal.limit is Limit.PAST_DUE):
        return ""
    lost = 1 - late_factor(terms.late_policy, terms.late_loss, own.late_days - own.free_days)
    cost = f"−{round(lost * 100)} %" if lost else gettext("it costs no points")
    if bank is not None and own.free_days:
        cost = counted(
            "%(num)s late day of your {total} is used, {cost}",
            "%(num)s late days of your {total} are used, {cost}",
            own.free_days,
        ).format(total=bank.total, cost=cost)
    return counted(
        "Handing in now counts as %(num)s day late: {cost}.",
        "Handing in now counts as %(num)s days late: {cost}.",
        own.late_days,
    ).format(cost=cost)


def _refused_now(form: HandInForm, own: OwnTask) -> Markup | str:
    """Why this upload was refused, unless the page tells by itself why nothing more is taken."""
    if form.refusal is None or (own.refusal is not None and own.refusal.limit is form.refusal.limit):
        return ""
    return _refusal_text(form.refusal)


def _refusal_text(refusal: Refusal) -> Markup:
    """Why nothing is taken, with a time that the browser shows in its own zone, as all others on the page."""
    return escape(explain_refusal(refusal, lifted="{}")).format(when(refusal.lifted_at))
