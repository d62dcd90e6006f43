"""Judging again: ask for it, look at what it would change, then apply or discard it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts.attempts import attempt, attempts
from grader.store.attempts.class_submissions import judged_by_another_version
from grader.store.courses.courses import course
from grader.store.courses.enrolments import participants
from grader.store.events import audit_of
from grader.store.grading import regrades
from grader.store.grading.pseudonyms import anonymous_tasks
from grader.store.tables.attempt import AttemptState, Lane
from grader.translation import N_, counted, gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, SignedIn, StaffAttempt, StaffBatch, not_found
from grader.web.service import ServiceDep, WebService
from grader.web.staff.attempt_query import attempt_query
from grader.web.staff.course_request import CourseRequestDep
from grader.web.staff.form import FormDep
from grader.web.staff.store_problems import problem_text

router = APIRouter()
_ENDED = (AttemptState.JUDGED, AttemptState.FAILED)


@router.get("/courses/{course_id}/regrades")
def batches(request: CourseRequestDep) -> HTMLResponse:
    """The course's regrades, newest first."""
    found = regrades.batches_of(request.service.store, request.course.id)
    states = {one.name: _state(request.service, one) for one in found}
    return request.page("regrades.html.j2", {"batches": found, "states": states})


@router.post("/courses/{course_id}/regrades")
def ask(request: CourseRequestDep, form: FormDep) -> Response:
    """Queue the ticked attempts, or all that match the filter once that is confirmed, and show the regrade."""
    if form.text("which") == "matching":
        chosen = _matching(request, form)
        if len(chosen) > regrades.MOST_ATTEMPTS:
            return request.redirect(
                "attempts",
                counted(
                    "More than %(num)s attempt matches; choose a task.",
                    "More than %(num)s attempts match; choose a task.",
                    regrades.MOST_ATTEMPTS,
                ),
                kind="problem",
            )
        if chosen and not is_confirmed(form):
            return _ask_first(request, len(chosen), form, "attempts")
    else:
        chosen = [one for one in form.ids("attempt") if _belongs(request, one)]
        if not chosen:
            return request.redirect(
                "attempts", gettext("Tick the attempts that shall be judged again."), kind="problem"
            )
    return _queue_regrade(request.service, chosen, request.actor, f"{request.at}/attempts")


@router.post("/courses/{course_id}/settings/{course_task_id}/regrade")
def ask_outdated(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Queue what counts in a task and was judged by another version than the one that is pinned now."""
    task = request.task(course_task_id)
    chosen = judged_by_another_version(request.service.store, task.id, task.terms.version)
    if len(chosen) > 1 and not is_confirmed(form):
        return _ask_first(request, len(chosen[: regrades.MOST_ATTEMPTS]), form, f"settings/{task.id}")
    return _queue_regrade(
        request.service, chosen[: regrades.MOST_ATTEMPTS], request.actor, f"{request.at}/settings/{task.id}"
    )


@router.post("/attempts/{attempt_id}/regrade")
def ask_one(service: ServiceDep, visitor: SignedIn, facts: StaffAttempt) -> Response:
    """Queue one attempt to be judged again."""
    return _queue_regrade(service, [facts.id], visitor.account.id, f"/attempts/{facts.id}")


@router.get("/regrades/{batch}")
def show(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    batch: StaffBatch,
    all: str = "",  # noqa: A002 - the address says so
) -> HTMLResponse:
    """What a regrade would change, attempt by attempt."""
    changes = regrades.preview(service.store, batch.name)
    course_facts = course(service.store, batch.course_id)
    if course_facts is None:
        raise not_found()
    names = _names(service, batch.course_id, changes)
    changing = [one for one in changes if one.changes]
    return service.render(
        request,
        "staff/regrade.html.j2",
        visitor=visitor,
        zone=course_facts.zone,
        course=course_facts,
        at=f"/courses/{course_facts.id}",
        teaches=visitor.teaches(batch.course_id),
        grades=visitor.grades(batch.course_id),
        batch=batch,
        shown=changes if all else changing,
        num_changing=len(changing),
        gained=sum(_accepted(one.after) and not _accepted(one.before) for one in changing),
        lost=sum(_accepted(one.before) and not _accepted(one.after) for one in changing),
        everything=bool(all),
        names=names,
        state=_state(service, batch),
        trial=regrades.trial_of(service.store, batch.name),
    )


@router.post("/regrades/{batch}/apply")
def apply(service: ServiceDep, visitor: SignedIn, batch: StaffBatch) -> Response:
    """Let what was judged count."""
    place = f"/regrades/{batch.name}"
    if _state(service, batch) == "discarded":
        return flash.redirect(
            place, service.secret, gettext("This regrade was discarded; ask for a new one."), kind="problem"
        )
    number = regrades.apply(service.store, batch.name, actor_id=visitor.account.id)
    told = counted(
        "Applied: %(num)s attempt counts as judged anew.",
        "Applied: %(num)s attempts count as judged anew.",
        number,
    )
    if batch.num_open:
        waiting = counted(
            "%(num)s is not judged yet: apply again when it is.",
            "%(num)s are not judged yet: apply again when they are.",
            batch.num_open,
        )
        told = f"{told} {waiting}"
    return flash.redirect(place, service.secret, told)


@router.post("/regrades/{batch}/discard")
def discard(service: ServiceDep, visitor: SignedIn, batch: StaffBatch) -> Response:
    """Keep everything as it was."""
    regrades.discard(service.store, batch.name, actor_id=visitor.account.id)
    back = "regrades" if visitor.teaches(batch.course_id) else "attempts"
    return flash.redirect(
        f"/courses/{batch.course_id}/{back}", service.secret, gettext("Discarded; nothing has changed.")
    )


def _ask_first(request: CourseRequestDep, number: int, form: FormDep, back: str) -> Response:
    question = Question(
        counted("Judge %(num)s attempt again?", "Judge %(num)s attempts again?", number),
        gettext(
            "They run behind what learners wait for, and take as long as they took before. Nothing changes before you "
            "have looked at the result and applied it."
        ),
        counted("Judge %(num)s attempt again", "Judge %(num)s attempts again", number),
        f"{request.at}/{back}",
        fields=form.values,
    )
    return ask_first(request.service, request.http, request.visitor, question)


def _queue_regrade(service: WebService, chosen: Sequence[int], actor: int, place: str) -> Response:
    try:
        batch = regrades.queue_new_runs(service.store, chosen, actor_id=actor)
    except UsageError as error:
        told = gettext("Nothing was queued: {problem}.").format(problem=problem_text(error))
        return flash.redirect(place, service.secret, told, kind="problem")
    return flash.redirect(
        f"/regrades/{batch}",
        service.secret,
        gettext("Queued. Nothing counts before you have looked at it and applied it."),
    )


def _matching(request: CourseRequestDep, form: FormDep) -> list[int]:
    fields = {name: form.text(name) for name in ("task", "person", "state", "verdict", "code")}
    wanted = attempt_query(**fields, lane=Lane.INTERACTIVE)
    found = attempts(
        request.service.store,
        # Those of the list that it was asked on: by a person only what is graded by name.
        replace(wanted.filter(request.course.id, request.learners), named=bool(wanted.person)),
        limit=regrades.MOST_ATTEMPTS + 1,
    )
    return [one.id for one in found if one.state in _ENDED]


def _belongs(request: CourseRequestDep, attempt_id: int) -> bool:
    found = attempt(request.service.store, attempt_id)
    return found is not None and found.course_id == request.course.id


def _names(service: WebService, course_id: int, changes: Sequence[regrades.RegradeChange]) -> dict[int, str]:
    """What the learners of these attempts are called, by attempt: by pseudonyms where the task is graded so."""
    names = {one.person_id: one.name for one in participants(service.store, course_id)}
    hidden = anonymous_tasks(service.store, course_id)
    if not hidden:
        return {one.attempt_id: names.get(one.person_id, "") for one in changes}
    found = (attempt(service.store, one.attempt_id) for one in changes)
    return {one.id: one.person for one in found if one is not None}


def _state(service: WebService, batch: regrades.RegradeBatch) -> str:
    """What became of a regrade, in a word that `gettext` knows."""
    kinds = {one.kind for one in audit_of(service.store, f"regrade:{batch.name}")}
    if batch.num_counting:
        whole = batch.num_counting >= batch.num_judged and not batch.num_open
        return N_("applied") if whole else N_("partly applied")
    if "regrade_discarded" in kinds:
        return N_("discarded")
    return N_("under way") if batch.num_open else N_("ready")


def _accepted(pair: tuple[Verdict, float] | None) -> bool:
    return pair is not None and pair[0] is Verdict.ACCEPTED
