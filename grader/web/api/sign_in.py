"""How people sign in here: whoever asks somebody for a password looks first whether there is one to ask for."""

from __future__ import annotations

from fastapi import APIRouter

from grader.web.documents.schemas import ERRORS
from grader.web.documents.sign_in_document import SignInOut
from grader.web.security.access import V1, Public
from grader.web.service import ServiceDep

router = APIRouter(prefix=V1, tags=["me"], responses=ERRORS)


@router.get("/sign-in", dependencies=[Public])
async def ways_to_sign_in(service: ServiceDep) -> SignInOut:
    """The ways in; by all but a password one gets a token on the account page, in a browser."""
    return SignInOut(
        passwords=service.sign_on.local_passwords,
        providers=[one.title for one in service.sign_on.providers],
    )
