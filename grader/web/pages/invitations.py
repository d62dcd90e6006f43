"""Invitations to a course: a link and a QR code for the projector, with an end, revoked by one click."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.invitations import Invited, invitations_of, invite, revoke_invitation
from grader.store.tables.person import Role
from grader.web.staff.qr import data_uri
from grader.web.staff.sent import Sent, SentForm
from grader.web.staff.taught import Taught, TaughtHere
from grader.web.visit import not_found

router = APIRouter()
_HOUR_S = 3600.0
LIFETIMES = (("1", "an hour"), ("12", "12 hours"), ("72", "3 days"), ("336", "two weeks"), ("", "no end"))
ROLES = (Role.LEARNER, Role.INSTRUCTOR)


@router.get("/courses/{course_id}/invitations")
def show(here: TaughtHere) -> HTMLResponse:
    """The codes of the course, and the form for a new one."""
    return _page(here, Sent({}, {}))


@router.post("/courses/{course_id}/invitations")
def add(here: TaughtHere, form: SentForm) -> Response:
    """A new code."""
    hours = form.one_of("hours", [value for value, _ in LIFETIMES])
    uses = form.whole("uses", least=1, most=100_000)
    role = Role(form.one_of("role", ROLES))
    if not form.good:
        return _page(here, form, 422)
    code = invite(
        here.site.store,
        here.course.id,
        role=role,
        lifetime_s=float(hours) * _HOUR_S if hours else None,
        max_uses=uses,
        actor_id=here.actor,
    )
    return here.send_on(f"invitations/{code}")


@router.get("/courses/{course_id}/invitations/{code}")
def poster(here: TaughtHere, code: str) -> HTMLResponse:
    """One code, large, for the projector or for paper."""
    one = _own(here, code)
    return here.page(
        "poster.html.j2", {"one": one, "address": _address(here, one), "qr": data_uri(_address(here, one))}
    )


@router.post("/courses/{course_id}/invitations/{code}/revoke")
def revoke(here: TaughtHere, code: str) -> Response:
    """End a code; who has entered with it stays."""
    revoke_invitation(here.site.store, _own(here, code).code, actor_id=here.actor)
    return here.send_on("invitations", "The code opens nothing any more.")


def _page(here: Taught, form: Sent, status_code: int = 200) -> HTMLResponse:
    return here.page(
        "invitations.html.j2",
        {
            "found": invitations_of(here.site.store, here.course.id),
            "form": form,
            "lifetimes": LIFETIMES,
            "roles": ROLES,
            "origin": here.site.origin(here.request),
        },
        status_code,
    )


def _own(here: Taught, code: str) -> Invited:
    for one in invitations_of(here.site.store, here.course.id):
        if one.code == code:
            return one
    raise not_found()


def _address(here: Taught, one: Invited) -> str:
    return f"{here.site.origin(here.request)}/join/{one.code}"
