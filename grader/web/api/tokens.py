"""A token for a password: how the command line signs in. The password is not kept, and neither is the token itself."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from grader.store.tables.api_token import Scope
from grader.store.tokens import issue_token, revoke_token, tokens_of
from grader.web.documents import ERRORS, PasswordIn, TokenOut
from grader.web.doors.rates import TooMany
from grader.web.doors.sign_in import sign_in
from grader.web.faults import problem
from grader.web.site import Here
from grader.web.visit import V1, Open, too_many

router = APIRouter(prefix=V1, tags=["me"], responses=ERRORS)
_LIFETIME_S = 180 * 86_400.0


@router.post("/tokens", status_code=201, response_model=TokenOut, dependencies=[Open])
def token_for_password(request: Request, site: Here, body: PasswordIn) -> Response:
    """A token that may read and hand in for half a year, for whoever knows login and password."""
    account = sign_in(site, request, body.login, body.password)
    if isinstance(account, TooMany):
        raise too_many(account)
    if account is None:
        return problem(401, "This login and password open nothing.", kind="wrong_password")
    if account.must_change:
        return problem(
            403, "Sign in with a browser first, and choose a password of your own.", kind="change_password"
        )
    for old in tokens_of(site.store, account.id):
        # Signing in again from the same machine leaves no token behind that nobody knows any more.
        if old.name == body.name and old.revoked_at is None:
            revoke_token(site.store, account.id, old.id, actor_id=account.id)
    token = issue_token(
        site.store, account.id, body.name, Scope.SUBMIT, lifetime_s=_LIFETIME_S, actor_id=account.id
    )
    made = tokens_of(site.store, account.id)[0]
    answer = TokenOut(token=token, name=made.name, scope=made.scope, expires_at=made.expires_at)
    return JSONResponse(answer.model_dump(mode="json"), 201, {"Cache-Control": "no-store"})
