"""All attempts of a course, newest first, with filters; some of them, or all that match, can be judged again."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import attempts
from grader.store.courses.enrolments import participants
from grader.store.grading.pseudonyms import anonymous_tasks
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role
from grader.web.staff.attempt_query import AttemptQueryDep
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.links import link

router = APIRouter()
_PAGE = 50


@router.get("/courses/{course_id}/attempts")
def show(request: ReaderRequestDep, wanted: AttemptQueryDep, before: str = "") -> HTMLResponse:
    """The attempts that match, fifty at a time."""
    start = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    # By a person only what is graded by name is found: otherwise the filter would tell who is who.
    chosen = replace(wanted.filter(request.course.id, request.learners), named=bool(wanted.person))
    found = attempts(request.service.store, chosen, before=start, limit=_PAGE + 1)
    place = f"{request.at}/attempts"
    older = link(place, {**wanted.fields(), "before": found[_PAGE - 1].id}) if len(found) > _PAGE else ""
    return request.page(
        "attempts.html.j2",
        {
            "found": found[:_PAGE],
            "results": results_of(request.service.store, [one.id for one in found]),
            "wanted": wanted,
            "newest": link(place, wanted.fields()) if start is not None else "",
            "older": older,
            "tasks": request.tasks(),
            "titles": {one.id: one.terms.title for one in request.tasks()},
            "learners": [
                one
                for one in participants(request.service.store, request.course.id)
                if one.role is Role.LEARNER and request.shown.section in (None, one.section)
            ],
            "states": list(AttemptState),
            "verdicts": [one for one in Verdict if one is not Verdict.JUDGE_ERROR],
            "lanes": list(Lane),
            "any_anonymous": bool(anonymous_tasks(request.service.store, request.course.id)),
        },
    )
