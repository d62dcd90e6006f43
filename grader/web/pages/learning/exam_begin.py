"""Beginning an exam: one's own time runs from the answer, so it is asked first."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.store.attempts.limits import Refusal
from grader.store.courses.exams import begin, exam_time
from grader.translation import counted, gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import SignedIn, VisibleCourseTask, not_found
from grader.web.service import ServiceDep
from grader.web.staff.form import FormDep
from grader.web.upload.intake import explain_refusal

router = APIRouter()


@router.post("/courses/{course_id}/tasks/{course_task_id}/begin")
def start(
    request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask, form: FormDep
) -> Response:
    """Let one's own time begin."""
    here = f"/courses/{found.course.id}/tasks/{found.task.id}"
    time = exam_time(service.store, found.task.id, visitor.account.id)
    if time is None:
        raise not_found()
    if time.begun_at is None and not is_confirmed(form):
        question = Question(
            gettext("Begin “{title}” now?").format(title=found.task.terms.title),
            counted(
                "Your %(num)s minute runs from this moment, and nothing stops them.",
                "Your %(num)s minutes run from this moment, and nothing stops them.",
                time.minutes + time.extra_minutes,
            ),
            gettext("Begin"),
            here,
            fields=form.values,
        )
        return ask_first(service, request, visitor, question)
    begun = begin(service.store, found.task.id, visitor.account.id)
    if isinstance(begun, Refusal):
        return flash.redirect(here, service.secret, explain_refusal(begun), kind="problem")
    return flash.redirect(here, service.secret)
