"""Late days that a course gives its learners, set by its staff."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.store.attempts.limits import LateBank
from grader.store.courses.late_days import set_late_bank
from grader.translation import counted, gettext
from grader.web.staff.course_request import CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()
_MOST = 365


@router.post("/courses/{course_id}/late-days")
def change(request: CourseRequestDep, form: FormDep) -> Response:
    """So many for everybody, or none; who stands where follows at once."""
    total = form.whole("late_days_total", least=0, most=_MOST)
    per_task = form.whole("late_days_per_task", least=1, most=_MOST)
    if not form.good:
        return request.redirect(
            "settings",
            gettext("Write late days as whole numbers up to {most}, or leave them empty.").format(most=_MOST),
            kind="problem",
        )
    bank = LateBank(total, per_task) if total else None
    set_late_bank(request.service.store, request.course.id, bank, actor_id=request.actor)
    if bank is None:
        return request.redirect("settings", gettext("The course gives no late days. Standings follow."))
    done = counted(
        "Each learner has %(num)s late day. Lateness and standings follow at once.",
        "Each learner has %(num)s late days. Lateness and standings follow at once.",
        bank.total,
    )
    return request.redirect("settings", done)
