"""The queue for those who teach: what waits and runs, who works, and the switches: pause, resume, drain."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.store import queue
from grader.store.claims import EVERYTHING
from grader.store.tables.attempt import Lane
from grader.store.waiting import running, waiting
from grader.web import flash
from grader.web.site import Here, Site
from grader.web.staff.sent import SentForm
from grader.web.visit import AnyStaff

router = APIRouter()
_REFRESH_S = 10
MOST_SHOWN = 100


@router.get("/queue")
def show(request: Request, site: Here, visitor: AnyStaff, live: str = "") -> HTMLResponse:
    """The queue at a glance; with `live` it renews itself, which a half-written reason would not survive."""
    state = queue.queue_state(site.store)
    waits = waiting(site.store)
    runs = running(site.store)
    served = {need for worker in state.workers if not worker.draining for need in worker.needs}
    return site.render(
        request,
        "staff/queue.html.j2",
        visitor=visitor,
        state=state,
        waiting=waits,
        running=[(one, visitor.teaches(one.course_id)) for one in runs[:MOST_SHOWN]],
        num_more=max(0, len(runs) - MOST_SHOWN),
        unserved=sorted({one.need for one in waits} - served),
        gates=_gates({one.need for one in waits} | served),
        everything=EVERYTHING,
        refresh_s=_REFRESH_S if live else 0,
        slots=sum(worker.slots for worker in state.workers if not worker.draining),
    )


@router.post("/queue/pause")
def pause(site: Here, visitor: AnyStaff, form: SentForm) -> Response:
    """Let nothing more be taken; what runs goes on, and submissions are still taken."""
    gate = form.text("gate", most=40)
    reason = form.text("reason", most=300)
    known = {value for value, _ in _gates(_needs(site))}
    if gate not in known:
        return flash.send_on("/queue", site.secret, "Choose what to pause.", kind="problem")
    if not reason:
        return flash.send_on("/queue", site.secret, "Say why: learners who wait can read it.", kind="problem")
    queue.pause(site.store, gate, reason=reason, actor_id=visitor.account.id)
    return flash.send_on("/queue", site.secret, "Paused. What runs goes on; submissions are still taken.")


@router.post("/queue/resume")
def resume(site: Here, visitor: AnyStaff, form: SentForm) -> Response:
    """Let it go on."""
    opened = queue.resume(site.store, form.text("gate", most=40), actor_id=visitor.account.id)
    return flash.send_on("/queue", site.secret, "It goes on." if opened else "That was not paused.")


@router.post("/queue/drain")
def drain(site: Here, visitor: AnyStaff, form: SentForm) -> Response:
    """Let a worker finish what it has and end."""
    name = form.text("worker", most=120)
    done = queue.drain_worker(site.store, name, actor_id=visitor.account.id)
    told = (
        f"{name} finishes what it has, takes nothing more, and ends." if done else "There is no such worker."
    )
    return flash.send_on("/queue", site.secret, told, kind="done" if done else "problem")


def _needs(site: Site) -> set[str]:
    workers = queue.queue_state(site.store).workers
    return {need for worker in workers for need in worker.needs} | {one.need for one in waiting(site.store)}


def _gates(needs: set[str]) -> list[tuple[str, str]]:
    """What can be paused: name and words."""
    return [
        (EVERYTHING, "everything"),
        (Lane.REGRADE.value, "regrades only"),
        (Lane.INTERACTIVE.value, "what learners hand in"),
        *((need, f"what needs {need}") for need in sorted(needs)),
    ]
