"""Who a request comes from: by a session's cookie on pages, by a token or the same cookie below `/api/`.

A token opens what its owner may do, as far as its scope reaches; on pages it is nobody's.
It lets nobody in, `access` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from grader.store.courses.learners import Learners
from grader.store.people.own_courses import OwnCourse
from grader.store.people.people import Account
from grader.store.people.sessions import visitor_in_session
from grader.store.tables.api_token import Scope
from grader.store.tables.person import Role
from grader.translation import counted, gettext
from grader.web.security import csrf
from grader.web.security.rate_limits import TOKEN_ADDRESS, RateExceeded
from grader.web.security.sessions import Session
from grader.web.service import ServiceDep, WebService

API, V1 = "/api/", "/api/v1"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody known: an account, and how far this request may go.

    Attributes:
        scope: of the token that was shown; None: signed in with a browser, everything that the account may do.
        courses: those that the account takes part in, with its role there.
        token: name of the token; "" where none was shown.
    """

    account: Account
    scope: Scope | None
    courses: tuple[OwnCourse, ...]
    token: str = ""

    @property
    def is_admin(self) -> bool:
        """Whether everything is open."""
        return self.account.role is Role.ADMIN

    @property
    def is_staff(self) -> bool:
        """Whether they teach anywhere, or are admin."""
        return self.is_admin or any(one.role is Role.INSTRUCTOR for one in self.courses)

    def teaches(self, course_id: int) -> bool:
        """Whether they are an instructor of that course, or admin: everything in it is theirs to change."""
        return self.is_admin or self._role(course_id) is Role.INSTRUCTOR

    def grades(self, course_id: int) -> bool:
        """Whether they decide about attempts of learners of that course: of those whom they are shown."""
        return self.teaches(course_id) or self._role(course_id) is Role.ASSISTANT

    def reads(self, course_id: int) -> bool:
        """Whether they are shown how learners of that course do."""
        return self.grades(course_id) or self._role(course_id) is Role.OBSERVER

    def learners(self, course_id: int) -> Learners | None:
        """Those of that course whom they are shown, if they read it; None: everybody who ever handed anything in."""
        if self.teaches(course_id):
            return None
        return Learners(next((one.section for one in self.courses if one.course_id == course_id), None))

    def reads_learner(self, course_id: int, role: Role | None, section: str | None) -> bool:
        """Whether somebody of that role and section there (None: of none) is among those whom they are shown."""
        if not self.reads(course_id):
            return False
        shown = self.learners(course_id)
        return shown is None or (role is Role.LEARNER and shown.section in (None, section))

    def _role(self, course_id: int) -> Role | None:
        return next((one.role for one in self.courses if one.course_id == course_id), None)

    def sees(self, course_id: int) -> bool:
        """Whether that course is there for them."""
        return self.is_admin or self._role(course_id) is not None

    def reaches(self, wanted: Scope) -> bool:
        """Whether the token, if there is one, goes that far."""
        return self.scope is None or self.scope.includes(wanted)


class SignInFirstError(HTTPException):
    """Nobody is signed in; pages lead to the sign-in page, programs get a 401."""

    def __init__(self, place: str) -> None:
        super().__init__(401, "Sign in first.", headers={"WWW-Authenticate": "Bearer"})
        self.place = place


class ChangePasswordFirstError(HTTPException):
    """The account still has its one-time password."""

    def __init__(self) -> None:
        super().__init__(403, "Choose a password of your own first.")


async def current_visitor(request: Request, service: ServiceDep) -> Visitor | None:
    """The visitor, or None; programs show a token below `/api/`, browsers a cookie anywhere."""
    if request.url.path.startswith(API) and "authorization" in request.headers:
        return await _by_token(request, service)
    session = service.sessions.read(request, secure=service.secure(request))
    found = None if session is None else await run_in_threadpool(_load, service, session)
    if found is None or session is None:
        nonce = service.sessions.guest(request, secure=service.secure(request))
    else:
        nonce = session.nonce
    request.state.nonce, request.state.visitor = nonce, found
    if found is not None or not request.url.path.startswith(API):
        await csrf.check(request, service.secret, nonce, service.origin(request))
    return found


async def _by_token(request: Request, service: WebService) -> Visitor:
    kind, _, token = request.headers["authorization"].partition(" ")
    address = service.address(request)
    refused = await service.rate_limiter.exceeded_async(TOKEN_ADDRESS, address)
    if refused is not None:
        raise too_many_requests(refused)
    bearer = kind.lower() == "bearer"
    use = await service.tokens.ask(token.strip()) if bearer else None
    if use is None:
        await service.rate_limiter.hit_async(TOKEN_ADDRESS, address)
        raise HTTPException(
            401,
            "This token does not work: it is unknown, has expired or was revoked.",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    visitor = Visitor(use.account, use.scope, use.courses, use.name)
    request.state.nonce, request.state.visitor = None, visitor
    return visitor


def _load(service: WebService, session: Session) -> Visitor | None:
    found = visitor_in_session(service.store, session.person_id, session.epoch, session.nonce)
    return None if found is None else Visitor(found[0], None, found[1])


MaybeVisitor = Annotated[Visitor | None, Depends(current_visitor)]
"""Whoever it is, if anybody: for pages that everybody may read."""


def not_found() -> HTTPException:
    """What answers for things that are not there, and for things that are not this visitor's."""
    return HTTPException(404, gettext("There is nothing here."))


def too_many_requests(refused: RateExceeded) -> HTTPException:
    """What answers somebody who comes too often."""
    return HTTPException(
        429,
        counted(
            "Too many requests of this kind. Try again in %(num)s second.",
            "Too many requests of this kind. Try again in %(num)s seconds.",
            refused.wait_s,
        ),
        headers={"Retry-After": str(refused.wait_s)},
    )


def return_path(request: Request) -> str:
    """Where to go after signing in; only pages are gone back to."""
    if request.method != "GET":
        return "/"
    query = f"?{request.url.query}" if request.url.query else ""
    return quote(request.url.path + query, safe="/?=&")
