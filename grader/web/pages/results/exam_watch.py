"""An exam as its staff watches it: who has begun, who has how long left; and releasing how it went."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.store.courses.courses import AssignedTask
from grader.store.courses.exams import exam_overview, release_feedback
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()
_RENEW_S = 15


@router.get("/courses/{course_id}/exams/{course_task_id}")
def show(request: CourseRequestDep, course_task_id: Id) -> Response:
    """Everybody's sitting; the list renews itself."""
    task = request.task(course_task_id)
    if task.terms.exam_minutes is None:
        return _no_exam(request, task)
    return request.page(
        "exam_watch.html.j2",
        {
            "task": task,
            "exam": exam_overview(request.service.store, task.id),
            "renew_s": _RENEW_S,
        },
    )


@router.post("/courses/{course_id}/exams/{course_task_id}/release")
def release(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Tell learners how their exam went, or hide it again (`released` empty)."""
    task, released = request.task(course_task_id), form.text("released") == "yes"
    if task.terms.exam_minutes is None:
        return _no_exam(request, task)
    at_work = exam_overview(request.service.store, task.id).num_at_work
    if released and at_work and not is_confirmed(form):
        question = Question(
            gettext("Release it while somebody is at it?"),
            counted(
                "%(num)s still has time left. Those who are done could tell them what was found.",
                "%(num)s still have time left. Those who are done could tell them what was found.",
                at_work,
            ),
            gettext("Release it"),
            f"{request.at}/exams/{task.id}",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    release_feedback(request.service.store, request.course.id, task.id, released, actor_id=request.actor)
    text = gettext("Learners read how it went now.") if released else gettext("How it went is hidden again.")
    return request.redirect(f"exams/{task.id}", text)


def _no_exam(request: CourseRequest, task: AssignedTask) -> Response:
    text = gettext("{title} is no exam; give it a time in minutes first.").format(title=task.terms.title)
    return request.redirect(f"settings/{task.id}", text, kind="note")
