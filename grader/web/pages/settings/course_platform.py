"""A course on the learning platforms that it is connected to: their lists of people, the grades that they are told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.lti.scores import LINE_ITEM_SCOPE
from grader.store.courses import enrolments
from grader.store.delivery import deliveries
from grader.store.delivery.deliveries import LoggedDelivery
from grader.store.lti import lti_contexts, lti_rosters, lti_scores
from grader.store.lti.lti_contexts import PlatformContext
from grader.store.lti.lti_scores import SCORE_SCOPE
from grader.store.tables.delivery import DeliveryState
from grader.translation import N_, counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()
_TOPIC = re.compile(r"task:(\d+) person:(\d+)")
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class GradeDelivery:
    """A line of the log: whose grade in which task, and what became of it."""

    id: int
    person: str
    task: str
    state: DeliveryState
    tried_at: datetime | None
    due_at: datetime
    tries: int
    answer: str

    @property
    def waiting(self) -> bool:
        """Whether it is still to be tried."""
        return self.state is DeliveryState.WAITING

    @property
    def failed(self) -> bool:
        """Whether it was given up."""
        return self.state is DeliveryState.GIVEN_UP


@router.get("/courses/{course_id}/platform")
def show(request: CourseRequestDep, state: str = "") -> HTMLResponse:
    """The connections, who left, and the log of grades; `state`: those of one state alone."""
    found = lti_contexts.contexts_of(request.service.store, request.course.id)
    wanted = DeliveryState(state) if state in set(DeliveryState) else None
    return request.page(
        "platform.html.j2",
        {
            "contexts": [(one, _services(one)) for one in found],
            "members": lti_contexts.num_members(request.service.store, [one.id for one in found]),
            "former": lti_contexts.former_members(request.service.store, request.course.id),
            "log": _log(request, wanted),
            "states": [("", gettext("All")), *((one.value, gettext(_STATES[one])) for one in DeliveryState)],
            "state": "" if wanted is None else wanted.value,
        },
    )


@router.post("/courses/{course_id}/platform/{context_id}/roster")
def read_roster(request: CourseRequestDep, context_id: Id) -> Response:
    """Read the platform's list of people now."""
    found = _context(request, context_id)
    if found.facts.members_url is None:
        return request.redirect(
            "platform", gettext("The platform shows no list of its people."), kind="problem"
        )
    asked = lti_rosters.ask_for_roster(request.service.store, found.id)
    said = (
        gettext("The list is being read; load this page again in a moment.")
        if asked
        else gettext("It is being read already.")
    )
    return request.redirect("platform", said, kind="done" if asked else "note")


@router.post("/courses/{course_id}/platform/{context_id}/disconnect")
def disconnect(request: CourseRequestDep, context_id: Id, form: FormDep) -> Response:
    """End a connection, if that is meant."""
    found = _context(request, context_id)
    if not is_confirmed(form):
        question = Question(
            gettext("Disconnect “{title}”?").format(title=found.facts.title),
            gettext(
                "Its links lead nowhere then, and no grade goes to its gradebook any more. People and grades here "
                "stay, and so do the grades that it has. Whoever teaches it there can connect it again by opening a "
                "link."
            ),
            gettext("Disconnect it"),
            f"{request.at}/platform",
        )
        return ask_first(request.service, request.http, request.visitor, question)
    lti_contexts.disconnect(request.service.store, found.id, actor_id=request.actor)
    return request.redirect(
        "platform", gettext("“{title}” is connected no more.").format(title=found.facts.title)
    )


@router.post("/courses/{course_id}/platform/grades")
def send_all(request: CourseRequestDep) -> Response:
    """Send every grade once more."""
    number = lti_scores.send_all(request.service.store, request.course.id)
    said = counted("%(num)s grade is on the way.", "%(num)s grades are on the way.", number)
    return request.redirect(
        "platform", said if number else gettext("There is no grade to send yet."), kind="done"
    )


@router.post("/courses/{course_id}/platform/grades/{delivery_id}")
def send_again(request: CourseRequestDep, delivery_id: Id) -> Response:
    """Send one that failed once more."""
    if not deliveries.retry(request.service.store, delivery_id, course_id=request.course.id):
        return request.redirect(
            "platform", gettext("It has arrived, or is on its way just now."), kind="note"
        )
    return request.redirect("platform", gettext("It is sent again."))


@router.post("/courses/{course_id}/platform/left")
def end_parts(request: CourseRequestDep, form: FormDep) -> Response:
    """End the part of those who left the platform's course, if that is meant."""
    former = {
        one.person_id: one for one in lti_contexts.former_members(request.service.store, request.course.id)
    }
    chosen = [former[one] for one in form.ids("person") if one in former]
    if not chosen:
        return request.redirect("platform", gettext("Tick somebody first."), kind="note")
    if not is_confirmed(form):
        names = ", ".join(one.name for one in chosen[:10]) + (" …" if len(chosen) > 10 else "")
        question = Question(
            counted("End the part of %(num)s person?", "End the part of %(num)s people?", len(chosen)),
            gettext("{names}: they will not see “{title}” any more. What they handed in is kept.").format(
                names=names, title=request.course.title
            ),
            gettext("End their part"),
            f"{request.at}/platform",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    for one in chosen:
        enrolments.leave(request.service.store, request.course.id, one.person_id, actor_id=request.actor)
    text = counted("%(num)s takes no part any more.", "%(num)s take no part any more.", len(chosen))
    return request.redirect("platform", text)


_STATES = {
    DeliveryState.WAITING: N_("On the way"),
    DeliveryState.DELIVERED: N_("Arrived"),
    DeliveryState.GIVEN_UP: N_("Failed"),
}


def _context(request: CourseRequest, context_id: int) -> PlatformContext:
    found = lti_contexts.context(request.service.store, context_id)
    if found is None or found.course_id != request.course.id:
        raise not_found()
    return found


def _services(found: PlatformContext) -> list[tuple[str, bool]]:
    """What the platform offers of what can be used, in words."""
    people, grades = found.facts.members_url is not None, SCORE_SCOPE in found.facts.scopes
    columns = LINE_ITEM_SCOPE in found.facts.scopes and found.facts.line_items_url is not None
    return [
        (gettext("list of people") if people else gettext("no list of people"), people),
        (gettext("grades") if grades else gettext("no grades"), grades),
        (gettext("columns for new tasks") if columns else gettext("no columns for new tasks"), columns),
    ]


def _log(request: CourseRequest, state: DeliveryState | None) -> list[GradeDelivery]:
    found = deliveries.deliveries_of(
        request.service.store, request.course.id, lti_scores.CHANNEL, state=state, limit=_SHOWN
    )
    names = {
        one.person_id: one.name for one in enrolments.participants(request.service.store, request.course.id)
    }
    titles = {one.id: one.terms.title for one in request.tasks()}
    return [_line(one, names, titles) for one in found]


def _line(one: LoggedDelivery, names: dict[int, str], titles: dict[int, str]) -> GradeDelivery:
    topic = _TOPIC.fullmatch(one.topic)
    task_id, person_id = (int(topic[1]), int(topic[2])) if topic is not None else (0, 0)
    return GradeDelivery(
        id=one.id,
        person=names.get(person_id, gettext("somebody who left")),
        task=titles.get(task_id, gettext("a task that is gone")),
        state=one.state,
        tried_at=one.tried_at,
        due_at=one.due_at,
        tries=one.tries,
        answer=one.answer or "",
    )
