"""Exams: how long one has, and beginning one."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from grader.store.attempts.limits import ExamTime, Refusal
from grader.store.courses.exams import begin, exam_time
from grader.web.documents.exam_schemas import ExamOut
from grader.web.documents.schemas import ERRORS
from grader.web.error_responses import error_response
from grader.web.security.access import V1, SignedIn, VisibleCourseTask
from grader.web.service import ServiceDep
from grader.web.upload.intake import explain_refusal

router = APIRouter(prefix=V1, tags=["exams"], responses=ERRORS)


@router.get("/course-tasks/{course_task_id}/exam")
def own_exam(service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> ExamOut | None:
    """The caller's own time in an exam; null: the task is none, or they take no part."""
    time = exam_time(service.store, found.task.id, visitor.account.id)
    return None if time is None else _out(time)


@router.post("/course-tasks/{course_task_id}/exam", response_model=ExamOut)
def begin_exam(service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> Response | ExamOut:
    """Let the caller's own time begin; once more changes nothing, and answers the same."""
    if exam_time(service.store, found.task.id, visitor.account.id) is None:
        raise HTTPException(409, "This task is no exam of yours: there is nothing to begin.")
    begun = begin(service.store, found.task.id, visitor.account.id)
    if isinstance(begun, Refusal):
        lifted = begun.lifted_at.isoformat() if begun.lifted_at else None
        return error_response(403, explain_refusal(begun), kind=begun.limit.value, lifted_at=lifted)
    return _out(begun)


def _out(time: ExamTime) -> ExamOut:
    return ExamOut(
        minutes=time.minutes + time.extra_minutes,
        begun_at=time.begun_at,
        ends_at=time.ends_at,
        closes_at=time.last_end,
    )
