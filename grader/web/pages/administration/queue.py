"""The queue for those who teach: what waits and runs, who works, and the switches: pause, resume, drain."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.store.queue import queue
from grader.store.queue.claims import EVERYTHING
from grader.store.queue.queue_overview import running_attempts, waiting_counts
from grader.store.tables.attempt import Lane
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import AnyStaff
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter()
_REFRESH_S = 10
_MOST_SHOWN = 100


@router.get("/queue")
def show(request: Request, service: ServiceDep, visitor: AnyStaff, live: str = "") -> HTMLResponse:
    """The queue at a glance; with `live` it renews itself, which a half-written reason would not survive."""
    state = queue.queue_state(service.store)
    waits = waiting_counts(service.store)
    runs = running_attempts(service.store)
    served = {need for worker in state.workers if not worker.draining for need in worker.needs}
    return service.render(
        request,
        "staff/queue.html.j2",
        visitor=visitor,
        state=state,
        waiting=waits,
        running=[(one, visitor.teaches(one.course_id)) for one in runs[:_MOST_SHOWN]],
        num_more=max(0, len(runs) - _MOST_SHOWN),
        unserved=sorted({one.need for one in waits} - served),
        gates=_gates({one.need for one in waits} | served),
        everything=EVERYTHING,
        refresh_s=_REFRESH_S if live else 0,
        slots=sum(worker.slots for worker in state.workers if not worker.draining),
    )


@router.post("/queue/pause")
def pause(service: ServiceDep, visitor: AnyStaff, form: FormDep) -> Response:
    """Let nothing more be taken; what runs goes on, and submissions are still taken."""
    gate = form.text("gate", most=40)
    reason = form.text("reason", most=300)
    known = {value for value, _ in _gates(_needs(service))}
    if gate not in known:
        return flash.redirect("/queue", service.secret, gettext("Choose what to pause."), kind="problem")
    if not reason:
        return flash.redirect(
            "/queue", service.secret, gettext("Say why: learners who wait can read it."), kind="problem"
        )
    queue.pause(service.store, gate, reason=reason, actor_id=visitor.account.id)
    return flash.redirect(
        "/queue", service.secret, gettext("Paused. What runs goes on; submissions are still taken.")
    )


@router.post("/queue/resume")
def resume(service: ServiceDep, visitor: AnyStaff, form: FormDep) -> Response:
    """Let it go on."""
    opened = queue.resume(service.store, form.text("gate", most=40), actor_id=visitor.account.id)
    return flash.redirect(
        "/queue", service.secret, gettext("It goes on.") if opened else gettext("That was not paused.")
    )


@router.post("/queue/drain")
def drain(service: ServiceDep, visitor: AnyStaff, form: FormDep) -> Response:
    """Let a worker finish what it has and end."""
    name = form.text("worker", most=120)
    done = queue.drain_worker(service.store, name, actor_id=visitor.account.id)
    message = (
        gettext("{name} finishes what it has, takes nothing more, and ends.").format(name=name)
        if done
        else gettext("There is no such worker.")
    )
    return flash.redirect("/queue", service.secret, message, kind="done" if done else "problem")


def _needs(service: WebService) -> set[str]:
    workers = queue.queue_state(service.store).workers
    return {need for worker in workers for need in worker.needs} | {
        one.need for one in waiting_counts(service.store)
    }


def _gates(needs: set[str]) -> list[tuple[str, str]]:
    """What can be paused: name and words."""
    return [
        (EVERYTHING, gettext("everything")),
        (Lane.REGRADE.value, gettext("regrades only")),
        (Lane.INTERACTIVE.value, gettext("what learners hand in")),
        *((need, gettext("what needs {need}").format(need=need)) for need in sorted(needs)),
    ]
