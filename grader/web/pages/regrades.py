"""Judging again: ask for it, look at what it would change, then apply or discard it."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store import regrades
from grader.store.attempts import attempt, attempts
from grader.store.collection import judged_otherwise
from grader.store.courses import course
from grader.store.enrolments import participants
from grader.store.events import audit_of
from grader.store.tables.attempt import AttemptState, Lane
from grader.web import flash
from grader.web.site import Here, Site
from grader.web.staff.sent import SentForm
from grader.web.staff.taught import TaughtHere
from grader.web.staff.wanted import wanted
from grader.web.visit import AttemptTaught, BatchTaught, Id, SignedIn, not_found

router = APIRouter()
MOST = 5000
"""Attempts that one regrade takes; more are asked for task by task."""
_ENDED = (AttemptState.JUDGED, AttemptState.FAILED)


@router.get("/courses/{course_id}/regrades")
def batches(here: TaughtHere) -> HTMLResponse:
    """The course's regrades, newest first."""
    found = regrades.batches_of(here.site.store, here.course.id)
    states = {one.name: _state(here.site, one) for one in found}
    return here.page("regrades.html.j2", {"batches": found, "states": states})


@router.post("/courses/{course_id}/regrades")
def ask(here: TaughtHere, form: SentForm) -> Response:
    """Queue the ticked attempts, or all that match the filter, and show the regrade."""
    if form.text("which") == "matching":
        chosen = _matching(here, form)
        if len(chosen) > MOST:
            return here.send_on(
                "attempts", f"More than {MOST:,} attempts match; choose a task.", kind="problem"
            )
    else:
        chosen = [one for one in form.ids("attempt") if _belongs(here, one)]
        if not chosen:
            return here.send_on("attempts", "Tick the attempts that shall be judged again.", kind="problem")
    return _asked(here.site, chosen, here.actor, f"{here.at}/attempts")


@router.post("/courses/{course_id}/settings/{course_task_id}/regrade")
def ask_outdated(here: TaughtHere, course_task_id: Id) -> Response:
    """Queue what counts in a task and was judged by another version than the one that is pinned now."""
    task = here.task(course_task_id)
    chosen = judged_otherwise(here.site.store, task.id, task.terms.version)
    return _asked(here.site, chosen[:MOST], here.actor, f"{here.at}/settings/{task.id}")


@router.post("/attempts/{attempt_id}/regrade")
def ask_one(site: Here, visitor: SignedIn, seen: AttemptTaught) -> Response:
    """Queue one attempt to be judged again."""
    return _asked(site, [seen.id], visitor.account.id, f"/attempts/{seen.id}")


@router.get("/regrades/{batch}")
def show(request: Request, site: Here, visitor: SignedIn, taught: BatchTaught, all: str = "") -> HTMLResponse:  # noqa: A002
    """What a regrade would change, attempt by attempt."""
    changes = regrades.preview(site.store, taught.name)
    facts = course(site.store, taught.course_id)
    if facts is None:
        raise not_found()
    names = {one.person_id: one.name for one in participants(site.store, taught.course_id)}
    changing = [one for one in changes if one.changes]
    return site.render(
        request,
        "staff/regrade.html.j2",
        visitor=visitor,
        course=facts,
        at=f"/courses/{facts.id}",
        batch=taught,
        shown=changes if all else changing,
        num_changing=len(changing),
        gained=sum(_accepted(one.after) and not _accepted(one.before) for one in changing),
        lost=sum(_accepted(one.before) and not _accepted(one.after) for one in changing),
        everything=bool(all),
        names=names,
        state=_state(site, taught),
    )


@router.post("/regrades/{batch}/apply")
def apply(site: Here, visitor: SignedIn, taught: BatchTaught) -> Response:
    """Let what was judged count."""
    place = f"/regrades/{taught.name}"
    if _state(site, taught) == "discarded":
        return flash.send_on(
            place, site.secret, "This regrade was discarded; ask for a new one.", kind="problem"
        )
    number = regrades.apply(site.store, taught.name, actor_id=visitor.account.id)
    rest = f" {taught.num_open} are not judged yet: apply again when they are." if taught.num_open else ""
    return flash.send_on(place, site.secret, f"Applied: {number} attempts count as judged anew.{rest}")


@router.post("/regrades/{batch}/discard")
def discard(site: Here, visitor: SignedIn, taught: BatchTaught) -> Response:
    """Keep everything as it was."""
    regrades.discard(site.store, taught.name, actor_id=visitor.account.id)
    return flash.send_on(
        f"/courses/{taught.course_id}/regrades", site.secret, "Discarded; nothing has changed."
    )


def _asked(site: Site, chosen: Sequence[int], actor: int, place: str) -> Response:
    try:
        batch = regrades.regrade(site.store, chosen, actor_id=actor)
    except UsageError as error:
        return flash.send_on(place, site.secret, f"Nothing was queued: {error}.", kind="problem")
    return flash.send_on(
        f"/regrades/{batch}",
        site.secret,
        "Queued. Nothing counts before you have looked at it and applied it.",
    )


def _matching(here: TaughtHere, form: SentForm) -> list[int]:
    fields = {name: form.text(name) for name in ("task", "person", "state", "verdict", "code")}
    found = attempts(
        here.site.store, wanted(**fields, lane=Lane.INTERACTIVE).filter(here.course.id), limit=MOST + 1
    )
    return [one.id for one in found if one.state in _ENDED]


def _belongs(here: TaughtHere, attempt_id: int) -> bool:
    found = attempt(here.site.store, attempt_id)
    return found is not None and found.course_id == here.course.id


def _state(site: Site, batch: regrades.Batch) -> str:
    """What became of a regrade, in one word."""
    kinds = {one.kind for one in audit_of(site.store, f"regrade:{batch.name}")}
    if batch.num_counting:
        return (
            "applied" if batch.num_counting >= batch.num_judged and not batch.num_open else "partly applied"
        )
    if "regrade_discarded" in kinds:
        return "discarded"
    return "under way" if batch.num_open else "ready"


def _accepted(pair: tuple[Verdict, float] | None) -> bool:
    return pair is not None and pair[0] is Verdict.ACCEPTED
