"""A provider of sign-on that answers as it is told: honestly, or with any forgery that somebody could think of.

The browser's part is played by the test: `send_back` reads where we sent it and says where the provider would send it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT, SECRET = "grader", "a secret with %, + and ü"
Claims = dict[str, Any]


@dataclass
class FakeProvider:
    """What it says, and how it lies.

    Attributes:
        issuer: its own address, once it is served.
        person: claims of whoever signs in next; in_token: those of them that stand in the ID token (None: all).
        forge: changes the claims of an ID token; header: changes its header; sign: makes the token another way.
        metadata: changes what it says of itself; answers: address → what it answers instead.
        seen: addresses that were asked for, in order.
    """

    issuer: str = ""
    person: Claims = field(default_factory=lambda: {"sub": "s-anna", "name": "Anna Arndt"})
    in_token: tuple[str, ...] | None = None
    forge: Callable[[Claims], Claims] = lambda claims: claims
    header: Claims = field(default_factory=dict)
    sign: Callable[[FakeProvider, Claims, Claims], str] | None = None
    metadata: Claims = field(default_factory=dict)
    answers: dict[str, Callable[[], Response]] = field(default_factory=dict)
    delay_s: float = 0.0
    secret: str = SECRET
    keys: dict[str, RSAKey] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.keys:
            self.new_key()

    def new_key(self) -> None:
        """Sign with another key from now on, and publish no other."""
        kid = f"key-{len(self.keys)}"
        self.keys[kid] = RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})
        self.published = [kid]

    def forget(self) -> None:
        """Be honest again, and remember nobody."""
        first = next(iter(self.keys))
        kept = FakeProvider(issuer=self.issuer, keys={first: self.keys[first]}, published=[first])
        vars(self).update(vars(kept))

    def app(self) -> Starlette:
        routes = {
            "/.well-known/openid-configuration": self._metadata,
            "/jwks": self._jwks,
            "/token": self._token,
            "/userinfo": self._userinfo,
        }
        return Starlette(
            routes=[
                Route(path, self._route(path, answer), methods=["GET", "POST"])
                for path, answer in routes.items()
            ]
        )

    def send_back(self, location: str, **more: str | None) -> str:
        """Where the browser comes back to, with a code for the person; `more` replaces or (None) leaves out."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert urlsplit(location).path == "/authorize", location
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(12)
        self.codes[code] = asked
        query = {"code": code, "state": asked["state"], "iss": self.issuer, **more}
        path = urlsplit(asked["redirect_uri"]).path
        return f"{path}?{urlencode({name: value for name, value in query.items() if value is not None})}"

    def _route(self, path: str, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            self.seen.append(path)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            if path in self.answers:
                return self.answers[path]()
            found: Response = await answer(request)
            return found

        return handle

    async def _metadata(self, _request: Request) -> Response:
        told = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/end",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }
        return JSONResponse({name: value for name, value in told.items() if value is not None})

    async def _jwks(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.keys[kid].as_dict(private=False) for kid in self.published]})

    async def _token(self, request: Request) -> Response:
        form = dict(await request.form())
        shown = base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
        if shown != f"{CLIENT}:{quote_plus(self.secret)}":
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = _base64(digest)
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        told = self.person if self.in_token is None else {name: self.person[name] for name in self.in_token}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "exp": int(time.time()) + 300,
            "iat": int(time.time()),
            "nonce": asked["nonce"],
            **told,
        }
        access = f"access-{self.person['sub']}"
        return JSONResponse(
            {"access_token": access, "token_type": "Bearer", "id_token": self._signed(claims)}
        )

    def _signed(self, claims: Claims) -> str:
        kid = list(self.keys)[-1]
        header = {"alg": "RS256", "kid": kid, **self.header}
        claims = {name: value for name, value in self.forge(claims).items() if value is not None}
        if self.sign is not None:
            return self.sign(self, header, claims)
        return jwt.encode(header, claims, self.keys[kid], registry=JWSRegistry(algorithms=[header["alg"]]))

    async def _userinfo(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer access-{self.person['sub']}":
            return PlainTextResponse("no", 401)
        return JSONResponse(self.person)


def unsigned(_provider: FakeProvider, header: Claims, claims: Claims) -> str:
    """Algorithm `none`, in the spelling that the header has."""
    return ".".join((_part({"alg": "none", **header}), _part(claims), ""))


def signed_with_the_public_key(provider: FakeProvider, header: Claims, claims: Claims) -> str:
    """HMAC whose secret everybody can read: the public key as a file of PEM."""
    signed = f"{_part({**header, 'alg': 'HS256'})}.{_part(claims)}"
    secret = provider.keys[header["kid"]].as_pem(private=False)
    return f"{signed}.{_base64(hmac.digest(secret, signed.encode(), 'sha256'))}"


def signed_by_another(_provider: FakeProvider, header: Claims, claims: Claims) -> str:
    """The key's name is right, and the key is somebody else's."""
    return jwt.encode(header, claims, RSAKey.generate_key(2048))


def with_a_key_of_its_own(_provider: FakeProvider, header: Claims, claims: Claims) -> str:
    """The token brings the key along that it is to be checked with."""
    key = RSAKey.generate_key(2048)
    return jwt.encode({**header, "jwk": key.as_dict(private=False)}, claims, key)


def elsewhere() -> Response:
    return RedirectResponse("/jwks", 302)


def in_circles() -> Response:
    return RedirectResponse("/token", 302)


def broken() -> Response:
    return PlainTextResponse("internal error", 500)


def huge() -> Response:
    return JSONResponse({"keys": ["x" * (1 << 20)]})


def no_json() -> Response:
    return PlainTextResponse("<html>sign in</html>")


def _part(fields: Claims) -> str:
    return _base64(json.dumps(fields).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
