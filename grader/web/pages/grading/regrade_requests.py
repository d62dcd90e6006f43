"""Deciding what a learner asked about a grade, with a reply that they read."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.grading import reviews
from grader.store.grading.regrade_requests import decide_request, requests_about
from grader.store.tables.regrade_request import RequestDecision
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import Id, SignedIn, StaffAttempt, not_found
from grader.web.service import ServiceDep
from grader.web.staff.form import FormDep
from grader.web.staff.review_page import ReviewForm, review_page
from grader.web.staff.store_problems import problem_text

router = APIRouter()
_DECISIONS = ("keep", "override", "changed")
_VERDICTS = tuple(one for one in Verdict if one not in (Verdict.JUDGE_ERROR, Verdict.HELD))


@router.post("/attempts/{attempt_id}/regrade-requests/{request_id}")
def decide(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    facts: StaffAttempt,
    request_id: Id,
    form: FormDep,
) -> Response:
    """Keep the grade, override it, or say that it was changed; with a reply that the learner reads."""
    if request_id not in {one.id for one in requests_about(service.store, facts.id)}:
        raise not_found()
    reply = form.needed("request_reply", gettext("A reply"))
    how = form.one_of("decision", _DECISIONS)
    try:
        if how == "override":
            verdict = form.one_of("request_verdict", _VERDICTS)
            points = form.number("request_points", least=0, most=facts.max_points or 0.0)
            if points is None and "request_points" not in form.errors:
                form.errors["request_points"] = gettext("Points are needed.")
            if form.good and points is not None:
                actor = visitor.account.id
                reviews.override(service.store, facts.id, Verdict(verdict), points, reply, actor_id=actor)
        if form.good:
            decision = RequestDecision.KEPT if how == "keep" else RequestDecision.CHANGED
            decide_request(service.store, request_id, decision, reply, actor_id=visitor.account.id)
    except UsageError as error:
        form.errors["request_reply"] = problem_text(error)
    if not form.good:
        return review_page(request, service, visitor, facts, ReviewForm(form), 422)
    done = gettext("Decided; {person} reads your reply.").format(person=facts.person)
    return flash.redirect(f"/courses/{facts.course_id}/review", service.secret, done)
