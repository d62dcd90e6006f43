"""The class view: which checks fail most in a task, without a name, also for the projector."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.report.html.explanation_pages import rule_titles
from grader.store.grading.class_statistics import code_counts, handed_in_counts
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.links import link

router = APIRouter()
_REFRESH_S = 20


@router.get("/courses/{course_id}/checks")
def show(request: ReaderRequestDep, task: str = "", hints: str = "", projector: str = "") -> HTMLResponse:
    """Codes found in a task of the course, those that most learners have now first."""
    tasks = request.tasks()
    chosen = next((one for one in tasks if str(one.id) == task), None)
    kept = request.service.until_next_event
    counts_of = kept.of(handed_in_counts, request.course.id, request.shown)
    if chosen is None and tasks:
        # What the class works on just now.
        chosen = max(tasks, key=lambda one: counts_of[one.id].last_attempt_id if one.id in counts_of else 0)
    counts = () if chosen is None else kept.of(code_counts, chosen.id, request.shown, with_hints=bool(hints))
    place = f"{request.at}/checks"
    fields = {"task": chosen.id if chosen else None, "hints": hints and "1"}
    return request.page(
        "checks_projector.html.j2" if projector else "checks.html.j2",
        {
            "tasks": tasks,
            "chosen": chosen,
            "counts": counts,
            "num_learners": counts_of[chosen.id].num_people if chosen and chosen.id in counts_of else 0,
            "hints": bool(hints),
            "titles": rule_titles(),
            "refresh_s": _REFRESH_S,
            "projector": link(place, {**fields, "projector": "1"}),
            "plain": link(place, fields),
        },
    )
