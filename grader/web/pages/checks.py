"""The class view: which checks fail most in a task, without a name, also for the projector."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.report.cards import title_of
from grader.report.pages import rule_pages
from grader.store.insights import class_view, handed_in
from grader.web.staff.links import link
from grader.web.staff.taught import TaughtHere

router = APIRouter()
_REFRESH_S = 20


@router.get("/courses/{course_id}/checks")
def show(here: TaughtHere, task: str = "", hints: str = "", projector: str = "") -> HTMLResponse:
    """Codes found in a task of the course, those that most learners have now first."""
    tasks = here.tasks()
    chosen = next((one for one in tasks if str(one.id) == task), None)
    counts_of = handed_in(here.site.store, here.course.id)
    if chosen is None and tasks:
        # What the class works on just now.
        chosen = max(tasks, key=lambda one: counts_of[one.id].last_attempt_id if one.id in counts_of else 0)
    counts = () if chosen is None else class_view(here.site.store, chosen.id, with_hints=bool(hints))
    place = f"{here.at}/checks"
    fields = {"task": chosen.id if chosen else None, "hints": hints and "1"}
    return here.page(
        "checks_projector.html.j2" if projector else "checks.html.j2",
        {
            "tasks": tasks,
            "chosen": chosen,
            "counts": counts,
            "num_learners": counts_of[chosen.id].num_people if chosen and chosen.id in counts_of else 0,
            "hints": bool(hints),
            "titles": _titles(),
            "refresh_s": _REFRESH_S,
            "projector": link(place, {**fields, "projector": "1"}),
            "plain": link(place, fields),
        },
    )


@cache
def _titles() -> dict[str, str]:
    return {code: title_of(code, page) for code, page in rule_pages().items()}
