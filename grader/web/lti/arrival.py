"""Somebody who was launched here: which launch it was, whose account it is, and which page of ours it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from grader.lti.deep_linking import TASK
from grader.lti.launch_message import LaunchMessage
from grader.store.courses.courses import AssignedTask, tasks_of
from grader.store.database import Store
from grader.store.lti.lti_contexts import (
    ContextFacts,
    PlatformContext,
    connected,
    enter,
    link_task,
    linked_task,
)
from grader.store.lti.lti_launches import KEPT_S, StoredLaunch, launch
from grader.store.lti.lti_platforms import LearningPlatform, platform
from grader.store.lti.lti_rosters import identity_of, sign_on_terms
from grader.store.people.identities import VouchedIdentity, owner_of
from grader.store.people.people import Account, account
from grader.store.people.sign_ons import SignOnRefusal, sign_on
from grader.store.tables.person import Role
from grader.translation import gettext
from grader.web.service import WebService

_SALT = "grader.lti.launch"
MOVE_S = 900
"""How long a page may stand open that leads to a window of its own."""
_NOT_BY_LAUNCH = (Role.ADMIN, Role.CI)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A launch with all that it says."""

    launch: StoredLaunch
    message: LaunchMessage
    platform: LearningPlatform

    @property
    def identity(self) -> VouchedIdentity:
        """Who comes, as the platform vouches for them."""
        said = self.message
        return identity_of(self.platform.terms, said.sub, said.person_name, said.email)

    @property
    def teaches(self) -> bool:
        """Whether they teach the platform's course."""
        return self.message.role is Role.INSTRUCTOR

    @property
    def facts(self) -> ContextFacts | None:
        """The platform's course; None: they come from none."""
        said = self.message
        if said.context is None:
            return None
        grades = said.grades
        return ContextFacts(
            platform_id=self.platform.id,
            deployment=said.deployment_id,
            context=said.context.id,
            title=(said.context.title or said.context.label or said.context.id)[:200],
            members_url=None if said.roster is None else said.roster.context_memberships_url,
            line_items_url=None if grades is None else grades.lineitems,
            scopes=() if grades is None else tuple(grades.scope),
        )


@dataclass(frozen=True, slots=True)
class LaunchRefusal:
    """Why somebody comes no further, as a page says it."""

    title: str
    text: str


def arrival(service: WebService, launch_id: int) -> Arrival | None:
    """The launch of that id with what it says, or None: it is over, or its platform was switched off."""
    found = launch(service.store, launch_id)
    known = None if found is None else platform(service.store, found.platform_id)
    if found is None or known is None or not known.enabled:
        return None
    return Arrival(found, LaunchMessage.model_validate(found.claims), known)


def launch_token(service: WebService, launch_id: int) -> str:
    """A launch as a page carries it where no cookie of ours reaches."""
    return _serializer(service).dumps(launch_id)


def launch_of_token(service: WebService, token: str) -> Arrival | None:
    """The launch that such a page carried, or None: it stood open for too long, or is none of ours."""
    try:
        return arrival(service, int(_serializer(service).loads(token, max_age=MOVE_S)))
    except (BadSignature, TypeError, ValueError):
        return None


def keep_launch(service: WebService, request: Request, response: Response, launch_id: int) -> None:
    """Let this browser go on with a launch on the pages to come."""
    secure = service.secure(request)
    response.set_cookie(
        _cookie(secure=secure),
        _serializer(service).dumps(launch_id),
        max_age=int(KEPT_S),
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )


def kept_launch(service: WebService, request: Request) -> Arrival | None:
    """The launch that this browser goes on with, or None."""
    value = request.cookies.get(_cookie(secure=service.secure(request)), "")
    try:
        return arrival(service, int(_serializer(service).loads(value, max_age=int(KEPT_S))))
    except (BadSignature, TypeError, ValueError):
        return None


def known_person(store: Store, found: Arrival) -> int | None:
    """The account that has this identity already, or None."""
    with store.read() as connection:
        row = owner_of(connection, found.identity)
    return None if row is None else int(row.id)


def account_of_arrival(service: WebService, found: Arrival) -> Account | LaunchRefusal:
    """The account of whoever comes, made where there is none."""
    signed_on = sign_on(service.store, found.identity, sign_on_terms(found.platform.terms))
    if signed_on is SignOnRefusal.CLOSED:
        return LaunchRefusal(
            gettext("Your account is closed"), gettext("Ask the administrator of the grader why.")
        )
    if isinstance(signed_on, SignOnRefusal):
        return LaunchRefusal(
            gettext("You have an account here already"),
            gettext(
                "It has your mail address, and is not opened by that alone. Sign in to it as you always did; whoever "
                "teaches you can join the two."
            ),
        )
    return may_be_launched(account(service.store, signed_on.person_id))


def may_be_launched(found: Account | None) -> Account | LaunchRefusal:
    """The account, if a platform's word may open it at all."""
    if found is None or not found.enabled:
        return LaunchRefusal(
            gettext("Your account is closed"), gettext("Ask the administrator of the grader why.")
        )
    if found.role in _NOT_BY_LAUNCH:
        return LaunchRefusal(
            gettext("An administrator signs in here"),
            gettext(
                "What a learning platform says opens no account that administers this service. Sign in with your "
                "password."
            ),
        )
    return found


def place_in(
    service: WebService, found: Arrival, context: PlatformContext, person_id: int
) -> str | LaunchRefusal:
    """Let somebody into the connected course, and the address of the page that the link means."""
    role = enter(service.store, context, person_id, found.message.sub, found.message.role)
    if role is None:
        return LaunchRefusal(
            gettext("You take no part in this course yet"),
            gettext(
                "Your learning platform calls you a mentor. Here everybody's work would be open to you, so it is for "
                "the course's instructor to let you in as an observer."
            ),
        )
    at = f"/courses/{context.course_id}"
    task = _task(service, found, context)
    if task is None or (not task.offered and role is Role.LEARNER):
        return at
    return f"{at}/tasks/{task.id}"


def _task(service: WebService, found: Arrival, context: PlatformContext) -> AssignedTask | None:
    """The task of the link: the one that the link names, or else the one it was told before."""
    link = found.message.resource_link
    tasks = {one.id: one for one in tasks_of(service.store, context.course_id) if not one.withdrawn}
    named = _named(tasks, found.message.custom.get(TASK))
    if link is None:
        return named
    if named is not None:
        column = None if found.message.grades is None else found.message.grades.lineitem
        link_task(service.store, context, link.id, named.id, column)
        return named
    known = linked_task(service.store, context.id, link.id)
    return None if known is None else tasks.get(known)


def _named(tasks: dict[int, AssignedTask], said: Any) -> AssignedTask | None:
    """A task by its number in the course, or by the name of its folder."""
    wanted = str(said or "").strip()
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        return tasks.get(int(wanted))
    return next((one for one in tasks.values() if one.task == wanted), None)


def connection_of(service: WebService, found: Arrival) -> PlatformContext | None:
    """The connection of the platform's course, or None: it is connected to none of ours."""
    facts = found.facts
    return None if facts is None else connected(service.store, facts)


def _serializer(service: WebService) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(service.secret, salt=_SALT)


def _cookie(*, secure: bool) -> str:
    return "__Host-lti-launch" if secure else "lti-launch"
