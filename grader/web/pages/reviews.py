"""An attempt as staff weigh it: source with findings in the margin, remarks, override and what was done so far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.model.grade import Grade, Verdict
from grader.model.notebook_lines import told_place
from grader.model.submission import Submission
from grader.report.audience import Audience, for_audience
from grader.report.cards import title_of
from grader.report.json_report import from_json
from grader.report.pages import rule_pages
from grader.store import reviews
from grader.store.attempts import StoredAttempt, files_of
from grader.store.courses import course
from grader.store.events import StoredEvent, events_of
from grader.store.grades import grade_of
from grader.store.held_attempts import HeldAttempt, held_attempts, held_since
from grader.store.learners import ALL_LEARNERS
from grader.store.people import account
from grader.store.submissions import source_of
from grader.web import flash
from grader.web.security.access import SignedIn, StaffAttempt, not_found
from grader.web.service import ServiceDep, WebService
from grader.web.staff.annotated_source import annotated_files, numbered_findings
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.held_reasons import held_reasons

router = APIRouter()
_CHOICES = tuple(one for one in Verdict if one not in (Verdict.JUDGE_ERROR, Verdict.HELD))
_DECISIONS = ("ask", "accept", "reject")
_NOISE = ("phase", "epoch", "log")


@router.get("/attempts/{attempt_id}/review")
def show(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, line: str = ""
) -> HTMLResponse:
    """The review page; `line` (`path:number`) is the place that a new remark is about."""
    return _page(request, service, visitor, facts, SubmittedForm({}, {}), line)


@router.post("/attempts/{attempt_id}/override")
def override(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Let another verdict and other points hold; what was judged is kept beside them."""
    verdict = form.one_of("verdict", _CHOICES)
    points = form.number("points", least=0, most=facts.max_points or 0.0)
    reason = form.needed("reason", "A reason")
    if points is None and "points" not in form.errors:
        form.errors["points"] = "Points are needed."
    if form.good and points is not None:
        try:
            reviews.override(
                service.store, facts.id, Verdict(verdict), points, reason, actor_id=visitor.account.id
            )
        except UsageError as error:
            form.errors["points"] = f"{error}"
        else:
            return flash.redirect(
                _place(facts), service.secret, "Overridden. What was judged is kept and shown below."
            )
    return _page(request, service, visitor, facts, form, "", 422)


@router.post("/attempts/{attempt_id}/decide")
def decide(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Accept or reject a held attempt, or ask its learner something; then on to the next of the queue."""
    waiting = held_attempts(service.store, facts.course_id, visitor.learners(facts.course_id) or ALL_LEARNERS)
    if facts.id not in held_since(service.store, [facts.id]):
        return flash.redirect(
            _place(facts), service.secret, "This attempt is not held any more.", kind="note"
        )
    text, judged = form.text("remark"), facts.points or 0.0
    decision = form.one_of("decision", _DECISIONS)
    points = form.number("points_if_rejected", least=0, most=judged) if decision == "reject" else judged
    if decision == "ask" and not text:
        form.errors["remark"] = "What do you want to know?"
    if not form.good:
        return _page(request, service, visitor, facts, form, "", 422)
    if decision == "ask":
        reviews.ask(service.store, facts.id, text, author_id=visitor.account.id)
        done = f"{facts.person} reads your question; the attempt stays held."
    else:
        verdict = Verdict.ACCEPTED if decision == "accept" else Verdict.REJECTED
        given = judged if points is None else points
        reason = text or f"An instructor looked at it and {decision}ed it."
        reviews.override(service.store, facts.id, verdict, given, reason, actor_id=visitor.account.id)
        done = f"{facts.person}: {verdict.value}, {given:g} of {facts.max_points or 0:g} points."
    place, rest = _next(waiting, facts)
    return flash.redirect(place, service.secret, f"{done} {rest}")


@router.post("/attempts/{attempt_id}/withdraw")
def withdraw(service: ServiceDep, visitor: SignedIn, facts: StaffAttempt) -> Response:
    """Let what was judged hold again."""
    done = reviews.withdraw_override(service.store, facts.id, actor_id=visitor.account.id)
    message = "The override is withdrawn; what was judged holds again." if done else "Nothing was overridden."
    return flash.redirect(_place(facts), service.secret, message)


@router.post("/attempts/{attempt_id}/comment")
def comment(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: StaffAttempt, form: FormDep
) -> Response:
    """Remark something on a line or on the whole."""
    text = form.needed("text", "A text")
    place = form.text("line", most=320)
    path, number = _line(service, facts, place)
    if place and path is None:
        form.errors["line"] = "There is no such line. Write it as train.py:12, or leave this empty."
    if not form.good:
        return _page(request, service, visitor, facts, form, place, 422)
    reviews.comment(service.store, facts.id, text, author_id=visitor.account.id, path=path, line=number)
    return flash.redirect(_place(facts), service.secret, "Your comment is there; the learner can read it.")


def _page(
    request: Request,
    service: WebService,
    visitor: SignedIn,
    facts: StoredAttempt,
    form: SubmittedForm,
    line: str,
    status_code: int = 200,
) -> HTMLResponse:
    course_facts = course(service.store, facts.course_id)
    if course_facts is None:
        raise not_found()
    # Where a rule deleted the scripts, people may still decide and comment.
    submission = source_of(service.store, facts.id) or Submission(facts.submission, ())
    grade = _grade(service, facts)
    remarks = reviews.comments_of(service.store, facts.id)
    titles = {code: title_of(code, page) for code, page in rule_pages().items()}
    found = (
        ()
        if grade is None
        else numbered_findings(grade.findings, for_audience(grade, Audience.LEARNER).findings, titles)
    )
    overrides = reviews.overrides_of(service.store, facts.id)
    events = [one for one in events_of(service.store, facts.id, limit=2000) if one.kind not in _NOISE]
    path, number = _line(service, facts, line)
    return service.render(
        request,
        "staff/review.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=course_facts,
        at=f"/courses/{course_facts.id}",
        attempt=facts,
        grades=visitor.grades(facts.course_id),
        grade=grade,
        held_since=held_since(service.store, [facts.id]).get(facts.id),
        reasons=held_reasons(grade) if facts.verdict is Verdict.HELD else (),
        found=found,
        listings=annotated_files(submission, found, remarks),
        told_place=partial(told_place, submission),
        remarks=remarks,
        overrides=overrides,
        holding=overrides[0] if overrides and overrides[0].withdrawn_at is None else None,
        events=events,
        actors=_names(service, events),
        files=files_of(service.store, facts.id),
        form=form,
        line=f"{path}:{number}" if path is not None else form.text("line", most=320),
    )


def _grade(service: WebService, facts: StoredAttempt) -> Grade | None:
    stored = grade_of(service.store, facts.id)
    if stored is None:
        return None
    try:
        return from_json(stored.document)
    except ValueError:
        # Of a schema that is no longer read; verdict and points stand in the table all the same.
        return None


def _next(waiting: Sequence[HeldAttempt], facts: StoredAttempt) -> tuple[str, str]:
    """Where to go after one of the queue, and words for it: the next that waits for no answer, or the queue itself."""
    ids = [one.attempt_id for one in waiting]
    here = ids.index(facts.id) if facts.id in ids else 0
    rest = [one for one in (*waiting[here:], *waiting[:here]) if one.attempt_id != facts.id]
    following = next((one for one in rest if not one.waits_for_learner), None)
    if following is not None:
        more = "This is the last one." if len(rest) == 1 else f"This is the next; {len(rest)} wait."
        return f"/attempts/{following.attempt_id}/review", more
    queue = f"/courses/{facts.course_id}/review"
    return queue, "What is left waits for an answer." if rest else "Nothing else waits for you."


def _line(service: WebService, facts: StoredAttempt, place: str) -> tuple[str | None, int | None]:
    """A place as `path:number`, where the submission has such a line."""
    path, _, number = place.rpartition(":")
    submission = source_of(service.store, facts.id)
    if submission is None or not (number.isascii() and number.isdigit()) or len(number) > 6:
        return None, None
    there = {file.path for file in submission.files}
    if path not in there or not 1 <= int(number) <= len(submission.lines(path)):
        return None, None
    return path, int(number)


def _names(service: WebService, events: list[StoredEvent]) -> dict[int, str]:
    found = {one.actor_id for one in events if one.actor_id is not None}
    known = {person_id: account(service.store, person_id) for person_id in found}
    return {person_id: one.name for person_id, one in known.items() if one is not None}


def _place(facts: StoredAttempt) -> str:
    return f"/attempts/{facts.id}/review"
