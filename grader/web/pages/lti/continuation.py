"""After a launch, in a window of one's own: whose account it is, which course is meant, and then on to its page.

Most people only pass through. Who teaches is asked twice at most: the first time they come whether they have an account
here already, and once for each course of the platform which of theirs it is.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from grader.errors import UsageError
from grader.lti.launch_message import MessageType
from grader.store.courses.courses import CourseFacts, add_course, courses
from grader.store.courses.enrolments import enrol
from grader.store.lti.lti_contexts import connect
from grader.store.lti.lti_launches import move_launch, set_launched_person
from grader.store.lti.lti_rosters import ask_for_roster
from grader.store.people.identities import LinkResult, link
from grader.store.people.people import Account, account
from grader.store.tables.person import Role
from grader.translation import gettext
from grader.web.lti import arrival
from grader.web.lti.arrival import Arrival, LaunchRefusal
from grader.web.lti.framed import refused_page
from grader.web.security.access import MaybeVisitor, Public, Visitor
from grader.web.security.sign_in import end_present_session, start_session
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter(dependencies=[Public])
_AT = "/lti/continue"
_NEW = "new"
_TRIES = 50


@router.get("/lti/continue")
def go_on(request: Request, service: ServiceDep, visitor: MaybeVisitor, launch: str = "") -> Response:
    """On to where the launch leads, or the question that comes first."""
    if launch:
        return _moved(service, request, launch)
    came = arrival.kept_launch(service, request)
    if came is None:
        return refused_page(service, request, _over())
    return _next(service, request, came, visitor)


@router.post("/lti/continue/account")
def choose_account(request: Request, service: ServiceDep, visitor: MaybeVisitor, form: FormDep) -> Response:
    """The account that one is signed in to, from now on opened by the platform, too; or a new one."""
    came = arrival.kept_launch(service, request)
    if came is None or came.launch.person_id is not None:
        return RedirectResponse(_AT, 303)
    if form.text("account") == _NEW:
        who = arrival.account_of_arrival(service, came)
    elif visitor is None:
        return RedirectResponse(f"/sign-in?next={_AT}", 303)
    else:
        who = _linked(service, came, visitor)
    if isinstance(who, LaunchRefusal):
        return refused_page(service, request, who)
    set_launched_person(service.store, came.launch.id, who.id)
    response = RedirectResponse(_AT, 303)
    if visitor is None or visitor.account.id != who.id:
        end_present_session(service, request)
        start_session(service, request, response, who)
    return response


@router.post("/lti/continue/course")
def choose_course(request: Request, service: ServiceDep, visitor: MaybeVisitor, form: FormDep) -> Response:
    """The course of ours that the platform's course is from now on."""
    came = arrival.kept_launch(service, request)
    facts = None if came is None else came.facts
    if came is None or facts is None or not _is_theirs(came, visitor) or not came.teaches:
        return refused_page(service, request, _over())
    assert visitor is not None
    offered = _offered(service, visitor)
    chosen = form.one_of("course", [*(str(one.id) for one in offered), *_new_course(came)] or [""])
    if not form.good:
        return _course_page(service, request, came, visitor, form)
    course_id = _found(service, facts.title, visitor) if chosen == _NEW else int(chosen)
    try:
        context_id = connect(service.store, facts, course_id, actor_id=visitor.account.id)
    except UsageError:
        # Somebody else connected it just now; which course it is stands on the next page.
        return RedirectResponse(_AT, 303)
    if facts.members_url is not None:
        ask_for_roster(service.store, context_id)
    return RedirectResponse(_AT, 303)


def _moved(service: WebService, request: Request, token: str) -> Response:
    """Go on with a launch that stands in a frame, once."""
    # From our own page in the frame alone: a link from elsewhere could let somebody join another's identity to their
    # account. Browsers too old to say where a request comes from are believed.
    ours = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    came = arrival.launch_of_token(service, token) if ours else None
    if came is None or not move_launch(service.store, came.launch.id):
        return refused_page(service, request, _over())
    response = RedirectResponse(_AT, 303)
    arrival.keep_launch(service, request, response, came.launch.id)
    who = None if came.launch.person_id is None else account(service.store, came.launch.person_id)
    if who is not None:
        end_present_session(service, request)
        start_session(service, request, response, who)
    return response


def _next(service: WebService, request: Request, came: Arrival, visitor: Visitor | None) -> Response:
    if came.launch.person_id is None:
        return service.render(request, "lti/account.html.j2", visitor=visitor, came=came)
    if not _is_theirs(came, visitor):
        return refused_page(service, request, _over())
    assert visitor is not None
    if came.facts is None:
        return RedirectResponse("/", 303)
    found = arrival.connection_of(service, came)
    if found is None and came.teaches:
        return _course_page(service, request, came, visitor, SubmittedForm({}, {}))
    if found is None:
        text = gettext(
            "Your instructor has not connected this course to the grader yet. They open the link once, and choose."
        )
        return refused_page(service, request, LaunchRefusal(gettext("Not connected yet"), text))
    place = arrival.place_in(service, came, found, visitor.account.id)
    if isinstance(place, LaunchRefusal):
        return refused_page(service, request, place)
    if came.message.message_type is MessageType.DEEP_LINKING:
        return service.render(request, "lti/connected.html.j2", visitor=visitor, came=came, place=place)
    return RedirectResponse(place, 303)


def _linked(service: WebService, came: Arrival, visitor: Visitor) -> Account | LaunchRefusal:
    may = arrival.may_be_launched(visitor.account)
    if isinstance(may, LaunchRefusal):
        return may
    if link(service.store, visitor.account.id, came.identity) is LinkResult.ANOTHERS:
        return LaunchRefusal(
            gettext("Another account has this identity"),
            gettext("Who you are on {platform} is joined to another account of the grader already.").format(
                platform=came.platform.terms.name
            ),
        )
    return may


def _over() -> LaunchRefusal:
    return LaunchRefusal(gettext("This launch is over"), gettext("Open the link in your course once more."))


def _is_theirs(came: Arrival, visitor: Visitor | None) -> bool:
    """Whether whoever is signed in now is the one whom the launch signed in."""
    return visitor is not None and visitor.account.id == came.launch.person_id


def _course_page(
    service: WebService, request: Request, came: Arrival, visitor: Visitor, form: SubmittedForm
) -> Response:
    return service.render(
        request,
        "lti/course.html.j2",
        visitor=visitor,
        status_code=200 if form.good else 422,
        came=came,
        title=came.facts.title if came.facts is not None else "",
        courses=_offered(service, visitor),
        new=_new_course(came),
        form=form,
    )


def _offered(service: WebService, visitor: Visitor) -> list[CourseFacts]:
    """The courses that one may connect: those that one teaches."""
    return [one for one in courses(service.store) if visitor.teaches(one.id)]


def _new_course(came: Arrival) -> list[str]:
    return [_NEW] if came.platform.terms.make_courses else []


def _found(service: WebService, title: str, visitor: Visitor) -> int:
    """Make a course of that title, taught by whoever makes it, and return its id."""
    name = re.sub(r"[^a-z0-9]+", "-", title.casefold()).strip("-")[:50] or "course"
    taken = {one.name for one in courses(service.store)}
    free = next(
        wanted
        for number in range(1, len(taken) + _TRIES)
        if (wanted := name if number == 1 else f"{name}-{number}") not in taken
    )
    course_id = add_course(service.store, free, title[:200], actor_id=visitor.account.id)
    enrol(service.store, course_id, visitor.account.id, Role.INSTRUCTOR, actor_id=visitor.account.id)
    return course_id
