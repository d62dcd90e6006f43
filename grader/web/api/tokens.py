"""A token for a password: how the command line signs in. The password is not kept, and neither is the token itself."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import JSONResponse, Response

from grader.store.people.tokens import issue_token, revoke_shown, revoke_token, tokens_of
from grader.store.tables.api_token import Scope
from grader.web.documents.schemas import ERRORS, PasswordIn, TokenOut
from grader.web.error_responses import error_response
from grader.web.security.access import V1, MaybeVisitor, Public, too_many_requests
from grader.web.security.rate_limits import RateExceeded
from grader.web.security.sign_in import sign_in
from grader.web.service import ServiceDep

router = APIRouter(prefix=V1, tags=["me"], responses=ERRORS)
_LIFETIME_S = 180 * 86_400.0


@router.post("/tokens", status_code=201, response_model=TokenOut, dependencies=[Public])
def token_for_password(request: Request, service: ServiceDep, body: PasswordIn) -> Response:
    """A token that may read and hand in for half a year, for whoever knows login and password."""
    account = sign_in(service, request, body.login, body.password)
    if isinstance(account, RateExceeded):
        raise too_many_requests(account)
    if account is None:
        return error_response(401, "This login and password do not go together.", kind="wrong_password")
    if account.must_change:
        return error_response(
            403, "Sign in with a browser first, and choose a password of your own.", kind="change_password"
        )
    for old in tokens_of(service.store, account.id):
        # Signing in again from the same machine leaves no token behind that nobody knows any more.
        if old.name == body.name and old.revoked_at is None:
            revoke_token(service.store, account.id, old.id, actor_id=account.id)
    token = issue_token(
        service.store, account.id, body.name, Scope.SUBMIT, lifetime_s=_LIFETIME_S, actor_id=account.id
    )
    made = tokens_of(service.store, account.id)[0]
    answer = TokenOut(token=token, name=made.name, scope=made.scope, expires_at=made.expires_at)
    return JSONResponse(answer.model_dump(mode="json"), 201, {"Cache-Control": "no-store"})


@router.delete("/tokens", dependencies=[Public])
def end_token(request: Request, service: ServiceDep, visitor: MaybeVisitor) -> dict[str, bool]:
    """End the token that this request shows, however far it goes: who signs out leaves no key behind."""
    if visitor is None or visitor.scope is None:
        raise HTTPException(401, "Show the token that is to end.", headers={"WWW-Authenticate": "Bearer"})
    _, _, token = request.headers["authorization"].partition(" ")
    return {"revoked": revoke_shown(service.store, token.strip(), actor_id=visitor.account.id)}
