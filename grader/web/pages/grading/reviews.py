"""An attempt as staff weigh it: the page beside its source, overriding, and deciding what is held."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt
from grader.store.courses.learners import ALL_LEARNERS
from grader.store.grading import reviews
from grader.store.grading.held_attempts import HeldAttempt, held_attempts, held_since
from grader.translation import counted, gettext
from grader.web import flash
from grader.web.security.access import SignedIn, StaffAttempt
from grader.web.service import ServiceDep
from grader.web.staff.form import FormDep
from grader.web.staff.review_page import ReviewForm, review_page

router = APIRouter()
_CHOICES = tuple(one for one in Verdict if one not in (Verdict.JUDGE_ERROR, Verdict.HELD))
_DECISIONS = ("ask", "accept", "reject")


@router.get("/attempts/{attempt_id}/review")
def show(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, line: str = ""
) -> HTMLResponse:
    """The review page; `line` (`path:number`) is the place that a new remark is about."""
    return review_page(request, service, visitor, facts, ReviewForm(line=line))


@router.post("/attempts/{attempt_id}/override")
def override(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Let another verdict and other points hold; what was judged is kept beside them."""
    verdict = form.one_of("verdict", _CHOICES)
    points = form.number("points", least=0, most=facts.max_points or 0.0)
    reason = form.needed("reason", gettext("A reason"))
    if points is None and "points" not in form.errors:
        form.errors["points"] = gettext("Points are needed.")
    if form.good and points is not None:
        try:
            reviews.override(
                service.store, facts.id, Verdict(verdict), points, reason, actor_id=visitor.account.id
            )
        except UsageError as error:
            form.errors["points"] = f"{error}"
        else:
            return flash.redirect(
                _place(facts), service.secret, gettext("Overridden. What was judged is kept and shown below.")
            )
    return review_page(request, service, visitor, facts, ReviewForm(form), 422)


@router.post("/attempts/{attempt_id}/decide")
def decide(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Accept or reject a held attempt, or ask its learner something; then on to the next of the queue."""
    waiting = held_attempts(service.store, facts.course_id, visitor.learners(facts.course_id) or ALL_LEARNERS)
    if facts.id not in held_since(service.store, [facts.id]):
        return flash.redirect(
            _place(facts), service.secret, gettext("This attempt is not held any more."), kind="note"
        )
    # With what comments on it change: deciding gives the points that it would have.
    result = results_of(service.store, [facts.id])[facts.id]
    text, judged = form.text("remark"), result.judged_points + result.comment_points
    decision = form.one_of("decision", _DECISIONS)
    points = form.number("points_if_rejected", least=0, most=judged) if decision == "reject" else judged
    if decision == "ask" and not text:
        form.errors["remark"] = gettext("What do you want to know?")
    if not form.good:
        return review_page(request, service, visitor, facts, ReviewForm(form), 422)
    if decision == "ask":
        reviews.ask(service.store, facts.id, text, author_id=visitor.account.id)
        done = gettext("{person} reads your question; the attempt stays held.").format(person=facts.person)
    else:
        verdict = Verdict.ACCEPTED if decision == "accept" else Verdict.REJECTED
        given = judged if points is None else points
        reason = text or (
            gettext("An instructor looked at it and accepted it.")
            if verdict is Verdict.ACCEPTED
            else gettext("An instructor looked at it and rejected it.")
        )
        reviews.override(service.store, facts.id, verdict, given, reason, actor_id=visitor.account.id)
        done = (
            gettext("{person}: accepted, {points} of {most} points.")
            if verdict is Verdict.ACCEPTED
            else gettext("{person}: rejected, {points} of {most} points.")
        ).format(person=facts.person, points=f"{given:g}", most=f"{facts.max_points or 0:g}")
    place, rest = _next(waiting, facts)
    return flash.redirect(place, service.secret, f"{done} {rest}")


@router.post("/attempts/{attempt_id}/withdraw")
def withdraw(service: ServiceDep, visitor: SignedIn, facts: StaffAttempt) -> Response:
    """Let what was judged hold again."""
    done = reviews.withdraw_override(service.store, facts.id, actor_id=visitor.account.id)
    message = (
        gettext("The override is withdrawn; what was judged holds again.")
        if done
        else gettext("Nothing was overridden.")
    )
    return flash.redirect(_place(facts), service.secret, message)


def _next(waiting: Sequence[HeldAttempt], facts: StoredAttempt) -> tuple[str, str]:
    """Where to go after one of the queue, and words for it: the next that waits for no answer, or the queue itself."""
    ids = [one.attempt_id for one in waiting]
    here = ids.index(facts.id) if facts.id in ids else 0
    rest = [one for one in (*waiting[here:], *waiting[:here]) if one.attempt_id != facts.id]
    following = next((one for one in rest if not one.waits_for_learner), None)
    if following is not None:
        more = counted("This is the last one.", "This is the next; %(num)s wait.", len(rest))
        return f"/attempts/{following.attempt_id}/review", more
    queue = f"/courses/{facts.course_id}/review"
    if rest:
        return queue, gettext("What is left waits for an answer.")
    return queue, gettext("Nothing else waits for you.")


def _place(facts: StoredAttempt) -> str:
    return f"/attempts/{facts.id}/review"
