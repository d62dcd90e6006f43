"""The certificates of a course as its staff sees them: who has one, and revoking one with a reason."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.grading import certificates
from grader.store.grading.certificates import CertificateFacts
from grader.translation import gettext
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()


@router.get("/courses/{course_id}/certificates")
def show(request: CourseRequestDep) -> HTMLResponse:
    """Everybody who has one, whether it holds or was revoked."""
    return request.page(
        "course_certificates.html.j2",
        {
            "found": certificates.certificates_of(request.service.store, request.course.id),
            "reasons": certificates.revocation_reasons(request.service.store, request.course.id),
        },
    )


@router.get("/courses/{course_id}/certificates/{person_id}")
def show_one(request: CourseRequestDep, person_id: Id) -> HTMLResponse:
    """One of them, and the form that revokes it."""
    return _page(request, _certificate(request, person_id), SubmittedForm({}, {}))


@router.post("/courses/{course_id}/certificates/{person_id}/revoke")
def revoke(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Take it back; the learner reads why."""
    one = _certificate(request, person_id)
    reason = form.needed("reason", gettext("A reason"))
    if not form.good:
        return _page(request, one, form, 422)
    store, course_id = request.service.store, request.course.id
    if certificates.revoke_certificate(store, course_id, one.person_id, reason, actor_id=request.actor):
        text = gettext("The certificate of {person} is revoked; its address says so, and they read why.")
        return request.redirect(f"certificates/{one.person_id}", text.format(person=one.person))
    return request.redirect(f"certificates/{one.person_id}", gettext("It was revoked already."), kind="note")


@router.post("/courses/{course_id}/certificates/{person_id}/reinstate")
def reinstate(request: CourseRequestDep, person_id: Id) -> Response:
    """Let it hold again."""
    one = _certificate(request, person_id)
    done = certificates.reinstate_certificate(
        request.service.store, request.course.id, one.person_id, actor_id=request.actor
    )
    text = (
        gettext("The certificate of {person} holds again.").format(person=one.person)
        if done
        else gettext("It was not revoked.")
    )
    return request.redirect(f"certificates/{one.person_id}", text, kind="done" if done else "note")


def _page(
    request: CourseRequest, one: CertificateFacts, form: SubmittedForm, status_code: int = 200
) -> HTMLResponse:
    reasons = certificates.revocation_reasons(request.service.store, request.course.id)
    context = {"certificate": one, "reason": reasons.get(one.person_id, ""), "form": form}
    return request.page("course_certificate.html.j2", context, status_code)


def _certificate(request: CourseRequest, person_id: int) -> CertificateFacts:
    found = certificates.certificate_of(request.service.store, request.course.id, person_id)
    if found is None:
        raise not_found()
    return found
