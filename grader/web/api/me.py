"""Who is asking."""

from __future__ import annotations

from fastapi import APIRouter

from grader.web.documents import ERRORS, MeOut
from grader.web.visit import V1, SignedIn

router = APIRouter(prefix=V1, tags=["me"], responses=ERRORS)


@router.get("/me")
async def me(visitor: SignedIn) -> MeOut:
    """The account behind the token or session."""
    account = visitor.account
    return MeOut(
        id=account.id, login=account.login, name=account.name, role=account.role, scope=visitor.scope
    )
