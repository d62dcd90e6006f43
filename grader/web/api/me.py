"""Who is asking."""

from __future__ import annotations

from fastapi import APIRouter

from grader.web.documents.schemas import ERRORS, MeOut
from grader.web.security.access import V1, SignedIn

router = APIRouter(prefix=V1, tags=["me"], responses=ERRORS)


@router.get("/me")
async def me(visitor: SignedIn) -> MeOut:
    """The account behind the token or session."""
    account = visitor.account
    return MeOut(
        id=account.id, login=account.login, name=account.name, role=account.role, scope=visitor.scope
    )
