"""Comments on attempts: written by staff, with points and from the library or not, answered by learners, taken back."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from grader.errors import UsageError
from grader.report.words.banner import signed
from grader.store.attempts.attempts import StoredAttempt
from grader.store.grading import reviews
from grader.store.grading.comment_library import MOST_POINTS, StoredEntry, entries_of
from grader.store.grading.comment_points import CommentChange, CommentPoints
from grader.store.grading.comment_replies import reply, settle, withdraw_comment
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import Id, SignedIn, StaffAttempt, VisibleAttempt, not_found
from grader.web.security.attempt_feedback import hidden_until, is_shown
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.review_page import ReviewForm, line_of, review_page
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.post("/attempts/{attempt_id}/comment")
def comment(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Remark something on a line or on the whole."""
    entry = _entry(service, facts, form)
    text = form.text("text") if entry is not None else form.needed("text", gettext("A text"))
    if entry is not None:
        text = f"{entry.comment.text}\n\n{text}".strip()
    place = form.text("line", most=320)
    path, number = line_of(service.store, facts, place)
    if place and path is None:
        form.errors["line"] = gettext("There is no such line. Write it as train.py:12, or leave this empty.")
    points = _points(form, entry)
    if not form.good:
        return review_page(request, service, visitor, facts, ReviewForm(form, place), 422)
    try:
        made = reviews.comment(
            service.store,
            facts.id,
            text,
            author_id=visitor.account.id,
            path=path,
            line=number,
            change=CommentChange(points, None if entry is None else entry.id),
        )
    except UsageError as error:
        form.errors["points"] = problem_text(error)
        return review_page(request, service, visitor, facts, ReviewForm(form, place), 422)
    changed = next(
        (one.points for one in reviews.comments_of(service.store, facts.id) if one.id == made), None
    )
    told = gettext("Your comment is there; the learner can read it.")
    if points is not None:
        whole = gettext("It changes points by {change}.")
        cut = gettext("It changes points by {change}: there was no room for more.")
        told += " " + (whole if changed == points.points else cut).format(change=signed(changed or 0.0))
    return flash.redirect(_place(facts), service.secret, told)


@router.post("/attempts/{attempt_id}/comments/{comment_id}/withdraw")
def withdraw(service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, comment_id: Id) -> Response:
    """Take a comment back, with what it changed."""
    done = withdraw_comment(service.store, facts.id, comment_id, actor_id=visitor.account.id)
    told = (
        gettext("The comment is gone, and so is what it changed.")
        if done
        else gettext("It was gone already.")
    )
    return flash.redirect(_place(facts), service.secret, told)


@router.post("/attempts/{attempt_id}/comments/{comment_id}/reply")
def answer(
    service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt, comment_id: Id, form: FormDep
) -> Response:
    """Answer a comment: whoever the attempt counts for, or staff."""
    if hidden_until(service, visitor, facts) is not None:
        raise not_found()
    return _after_reply(service, visitor, facts, comment_id, form)


@router.post("/attempts/{attempt_id}/comments/{comment_id}/settle")
def settled(service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, comment_id: Id) -> Response:
    """Say that a learner's last word needs no answer."""
    settle(service.store, facts.id, comment_id, actor_id=visitor.account.id)
    return flash.redirect(f"/courses/{facts.course_id}/review", service.secret, gettext("It waits no more."))


def _after_reply(
    service: WebService, visitor: SignedIn, facts: StoredAttempt, comment_id: int, form: SubmittedForm
) -> RedirectResponse:
    staff = is_shown(service, visitor, facts)
    place = _place(facts) if staff else f"/attempts/{facts.id}#comments"
    try:
        reply(service.store, facts.id, comment_id, form.text("reply"), author_id=visitor.account.id)
    except UsageError as error:
        told = gettext("Nothing was sent: {problem}.").format(problem=problem_text(error))
        return flash.redirect(place, service.secret, told, kind="problem")
    told = (
        gettext("Your answer is there; the learner can read it.")
        if staff
        else gettext("Your answer is with the instructors.")
    )
    return flash.redirect(place, service.secret, told)


def _entry(service: WebService, facts: StoredAttempt, form: SubmittedForm) -> StoredEntry | None:
    chosen = form.text("entry", most=20)
    if not chosen:
        return None
    found = next((one for one in entries_of(service.store, facts.course_id) if str(one.id) == chosen), None)
    if found is None:
        form.errors["entry"] = gettext("It is not in the library any more.")
    return found


def _points(form: SubmittedForm, entry: StoredEntry | None) -> CommentPoints | None:
    """What the form says, or else what the library does."""
    # A minus as people type it, and as we print it.
    form.values["comment_points"] = [form.text("comment_points", most=40).replace("−", "-")]
    given = form.number("comment_points", least=-MOST_POINTS, most=MOST_POINTS)
    if given is None:
        return None if entry is None or "comment_points" in form.errors else entry.comment.points
    return CommentPoints(given, form.text("item", most=80) or None) if given else None


def _place(facts: StoredAttempt) -> str:
    return f"/attempts/{facts.id}/review"
