"""Requests that change something come from our own pages: a token in the form, and the browser's word for the origin.

Holds for whoever is known by a cookie, guests included (nobody shall be signed in to another's account). Programs with
a token of their own send no cookie, so nobody can send one in their name.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

from grader.translation import gettext

FIELD, HEADER = "csrf", "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
ELSEWHERE = frozenset({"/lti/login", "/lti/launch", "/lti/deep-linking", "/lti/register"})
"""Where learning platforms send browsers, or a page stands in a frame of theirs, without any cookie of ours: these
routes believe what is signed, and nothing else."""
MAX_FIELDS = 200
MAX_FILES = 80
PART_BYTES = 2 << 20


class ForgedError(HTTPException):
    """The request did not come from one of our pages, or from one that is too old."""

    def __init__(self) -> None:
        super().__init__(
            403,
            gettext(
                "This form is too old or came from elsewhere. Load the page again and send it once more."
            ),
        )


def token(secret: str, nonce: str) -> str:
    """The token that forms of this session carry."""
    return hmac.new(secret.encode(), b"csrf" + nonce.encode(), hashlib.sha256).hexdigest()


async def check(request: Request, secret: str, nonce: str | None, origin: str) -> None:
    """Refuse a request that changes something and is not from a page of ours.

    Args:
        request: its form is read (within the caps) where the header carries no token.
        secret: the service's.
        nonce: of the session or guest that the cookie names; None: no cookie.
        origin: `https://host` of the service as browsers see it.

    Raises:
        ForgedError: there is no token, a wrong one, or another origin.
    """
    if request.method in SAFE or request.url.path in ELSEWHERE:
        return
    if _elsewhere(request, origin) or nonce is None:
        raise ForgedError
    given = request.headers.get(HEADER)
    if given is None and is_form(request):
        form = await form_of(request)
        field = form.get(FIELD)
        given = field if isinstance(field, str) else None
    if given is None or not hmac.compare_digest(given.encode(), token(secret, nonce).encode()):
        raise ForgedError


def is_form(request: Request) -> bool:
    """Whether what the request brings is a form."""
    return request.headers.get("content-type", "").lower().startswith(_FORMS)


async def form_of(request: Request) -> FormData:
    """The form that a request brings, within the caps; read once, and gone when the request is answered."""
    # `BodyCaps` closes it: files larger than a megabyte lie on the disk until then.
    form = await request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=PART_BYTES)
    request.state.form = form
    return form


def _elsewhere(request: Request, origin: str) -> bool:
    """Whether the browser says that another site sent this; old ones say nothing, the token decides then."""
    origin_header = request.headers.get("origin")
    if origin_header is not None:
        return origin_header != origin
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    referer = request.headers.get("referer")
    if referer is None:
        return False
    parts = urlsplit(referer)
    return f"{parts.scheme}://{parts.netloc}" != origin
