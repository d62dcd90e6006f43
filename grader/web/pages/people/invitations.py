"""Invitations to a course: a link and a QR code for the projector, with an end, revoked by one click."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.people.invitations import InvitationFacts, invitations_of, invite, revoke_invitation
from grader.store.tables.person import COURSE_ROLES, Role
from grader.translation import N_, gettext
from grader.web.role_names import role_plural
from grader.web.security.access import not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.qr_codes import qr_data_uri
from grader.web.staff.roster import MAX_DETAIL

router = APIRouter()
_HOUR_S = 3600.0
_LIFETIMES = (
    ("1", N_("an hour")),
    ("12", N_("12 hours")),
    ("72", N_("3 days")),
    ("336", N_("two weeks")),
    ("", N_("no end")),
)


@router.get("/courses/{course_id}/invitations")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The codes of the course, and the form for a new one."""
    return _page(request, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/invitations")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """A new code."""
    hours = form.one_of("hours", [value for value, _ in _LIFETIMES])
    uses = form.whole("uses", least=1, most=100_000)
    role = Role(form.one_of("role", COURSE_ROLES))
    section = form.text("section", most=MAX_DETAIL) or None
    if not form.good:
        return _page(request, form, 422)
    code = invite(
        request.service.store,
        request.course.id,
        role=role,
        section=section,
        lifetime_s=float(hours) * _HOUR_S if hours else None,
        max_uses=uses,
        actor_id=request.actor,
    )
    return request.redirect(f"invitations/{code}")


@router.get("/courses/{course_id}/invitations/{code}")
def poster(request: CourseRequestDep, code: str) -> HTMLResponse:
    """One code, large, for the projector or for paper."""
    one = _invitation(request, code)
    return request.page(
        "poster.html.j2",
        {"one": one, "address": _address(request, one), "qr": qr_data_uri(_address(request, one))},
    )


@router.post("/courses/{course_id}/invitations/{code}/revoke")
def revoke(request: CourseRequestDep, code: str) -> Response:
    """End a code; who has entered with it stays."""
    revoke_invitation(request.service.store, _invitation(request, code).code, actor_id=request.actor)
    return request.redirect("invitations", gettext("The code no longer lets anybody in."))


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    return request.page(
        "invitations.html.j2",
        {
            "found": invitations_of(request.service.store, request.course.id),
            "form": form,
            "lifetimes": [(hours, gettext(text)) for hours, text in _LIFETIMES],
            "roles": [(role, role_plural(role)) for role in COURSE_ROLES],
            "site": request.service.site(request.http),
            "named": request.service.site(request.http) == request.service.origin(request.http),
        },
        status_code,
    )


def _invitation(request: CourseRequest, code: str) -> InvitationFacts:
    for one in invitations_of(request.service.store, request.course.id):
        if one.code == code:
            return one
    raise not_found()


def _address(request: CourseRequest, one: InvitationFacts) -> str:
    return f"{request.service.site(request.http)}/join/{one.code}"
