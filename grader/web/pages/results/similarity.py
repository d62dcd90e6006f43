"""Submissions of a class that look alike, for staff: where to look, never what to think. Learners never see it.

What is shown was compared when it was handed in; a page only reads it.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import InfraError, UsageError
from grader.store.attempts.class_submissions import LastSubmission, work_of
from grader.store.attempts.similar_pairs import comparison_of, pairs_of
from grader.web.security.access import Id, not_found
from grader.web.similarity.comparison_process import MAX_SUBMISSIONS
from grader.web.staff.class_similarity import compare_class, side_by_side
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()


@router.get("/courses/{course_id}/similarity")
def show(request: CourseRequestDep, task: str = "") -> HTMLResponse:
    """The pairs of a task as they were last compared; at first of the course's first one."""
    tasks = {str(one.id): one.terms.title for one in request.tasks()}
    return _page(request, tasks, task if task in tasks else next(iter(tasks), ""))


@router.post("/courses/{course_id}/similarity")
def compare(request: CourseRequestDep, form: FormDep) -> Response:
    """Compare the last submission of every learner now."""
    chosen = form.ids("task")
    if len(chosen) != 1:
        raise not_found()
    task = request.task(chosen[0])
    try:
        compare_class(request.service.store, request.service.files, task)
    except (UsageError, InfraError) as error:
        tasks = {str(one.id): one.terms.title for one in request.tasks()}
        return _page(request, tasks, str(task.id), f"{error}.".replace("..", "."))
    return request.redirect(f"similarity?task={task.id}")


@router.get("/courses/{course_id}/similarity/{course_task_id}/{first}/{second}")
def pair(request: CourseRequestDep, course_task_id: Id, first: Id, second: Id) -> HTMLResponse:
    """Two submissions side by side: of this class, or one of them of another course that the visitor teaches."""
    task = request.task(course_task_id)
    a, b = (_work(request, number, task.task) for number in (first, second))
    if a is None or b is None or first == second or request.course.id not in (a[1], b[1]):
        raise not_found()
    error = ""
    try:
        sides = side_by_side(request.service, a[0], b[0], task)
    except (UsageError, InfraError) as failed:
        sides, error = None, str(failed)
    return request.page("similar_pair.html.j2", {"task": task, "sides": sides or (), "error": error})


def _work(request: CourseRequest, attempt_id: int, task: str) -> tuple[LastSubmission, int] | None:
    """A submission for the task of that name, with its course, which the visitor teaches; None: there is none."""
    found = work_of(request.service.store, attempt_id)
    if found is None:
        return None
    work, course_id, name = found
    return (work, course_id) if name == task and request.visitor.teaches(course_id) else None


def _page(request: CourseRequest, tasks: dict[str, str], task: str, error: str = "") -> HTMLResponse:
    store, visitor = request.service.store, request.visitor
    pairs = pairs_of(store, int(task)) if task else ()
    shown = [one for one in pairs if visitor.teaches(one.b.course_id)]
    return request.page(
        "similarity.html.j2",
        {
            "tasks": tasks,
            "chosen": task,
            "compared": comparison_of(store, int(task)) if task else None,
            "pairs": shown,
            "num_elsewhere": len(pairs) - len(shown),
            "error": error,
            "most": MAX_SUBMISSIONS,
        },
    )
