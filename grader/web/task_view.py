"""What a task's page shows, however one came to it: by its address, after a refused upload, after a mere check."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from grader.model.submission import Submission
from grader.store.attempts import Filter, attempts
from grader.store.limits import Limit
from grader.store.progress import progress
from grader.web.found import look_at
from grader.web.known_tasks import known_task
from grader.web.site import Site
from grader.web.trend import trend
from grader.web.upload.handing_in import explain
from grader.web.visit import CourseTask, Visitor, not_found

_HISTORY = 50


def task_page(
    request: Request,
    site: Site,
    visitor: Visitor,
    found: CourseTask,
    *,
    checked: Submission | None = None,
    problem: str = "",
    pasted: str = "",
    status_code: int = 200,
) -> Response:
    """The page.

    Args:
        request, site, visitor, found: of the route.
        checked: a script that was only to be looked at; problem: why an upload was not taken.
        pasted: text to be kept in the form; status_code: of the answer.
    """
    person_id, course_id = visitor.account.id, found.course.id
    own = next(
        (one for one in progress(site.store, course_id, person_id) if one.task.id == found.task.id), None
    )
    if own is None:
        raise not_found()
    wanted = Filter(course_task_id=found.task.id, person_id=person_id)
    history = [one for one in attempts(site.store, wanted, limit=_HISTORY) if one.counts]
    # What a task asks is told when it opens; staff see it before.
    not_open = own.refusal is not None and own.refusal.limit is Limit.NOT_OPEN
    task = None if not_open else known_task(found.task.task)
    hidden = own.hidden_until is not None
    return site.render(
        request,
        "task.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=found.course,
        own=own,
        terms=found.task.terms,
        task=task,
        not_open=not_open,
        profile=None if task is None else task.profile(found.task.profile),
        here=f"/courses/{course_id}/tasks/{found.task.id}",
        refused="" if own.refusal is None else explain(own.refusal),
        history=history,
        trend=None if hidden else trend(history),
        found=None if checked is None else look_at(checked),
        problem=problem,
        pasted=pasted,
        teaches=visitor.teaches(course_id),
    )
