"""A learning platform of our own, on a real port: it launches, gives tokens, lists people, takes columns and grades.

Strict where the specifications are: it checks our word for a token by our published keys, refuses scopes that it did
not give, and takes no grade that is not newer than the one before. A test may let it lie, fail or be slow.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from grader.lti.launch_message import CLAIM, DEEP_LINKING, GRADES, ROSTER
from tests.web.conftest import serving

CLIENT_ID, DEPLOYMENT = "grader-client", "1"
ROLE = "http://purl.imsglobal.org/vocab/lis/v2/membership#"
AGS = "https://purl.imsglobal.org/spec/lti-ags/scope/"
NRPS_SCOPE = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
SCOPES = [f"{AGS}lineitem", f"{AGS}score", NRPS_SCOPE]
SCORE_TYPE = "application/vnd.ims.lis.v1.score+json"
ITEM_TYPE = "application/vnd.ims.lis.v2.lineitem+json"


@cache
def rsa_key(kid: str) -> RSAKey:
    """A key of that name, made once for all tests."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


@dataclass
class Fault:
    """What one of its services does instead of what it should: `status`, after so many seconds, so many times."""

    status: int
    times: int = 1
    after: bool = False
    """Only once it has done its work: the answer gets lost."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class TestPlatform:
    """The platform; `url` is its issuer.

    Attributes:
        tool: our site as it knows it; tool_keys: reads our public keys.
        members: of its course, as its list says; page: how many of them a page of it holds.
        line_items, scores: its columns by address, and what was taken in each, in order.
        faults: by service (`keys`, `token`, `members`, `items`, `scores`), in the order in which they happen.
        calls: what was asked, in order.
    """

    __test__ = False

    url: str
    tool_keys: Callable[[], dict[str, Any]]
    tool: str = "http://testserver"
    key: RSAKey = field(default_factory=lambda: rsa_key("k1"))
    published: list[RSAKey] = field(default_factory=lambda: [rsa_key("k1")])
    members: list[dict[str, Any]] = field(default_factory=list)
    page: int = 2
    line_items: dict[str, dict[str, Any]] = field(default_factory=dict)
    scores: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    assertions: set[str] = field(default_factory=set)
    registered: list[dict[str, Any]] = field(default_factory=list)

    def terms(self, **more: Any) -> dict[str, Any]:
        """What an administrator types about it."""
        return {
            "name": "Test Moodle",
            "issuer": self.url,
            "client_id": CLIENT_ID,
            "auth_url": f"{self.url}/auth",
            "token_url": f"{self.url}/token",
            "jwks_url": f"{self.url}/keys",
            "deployments": (DEPLOYMENT,),
            **more,
        }

    def login(self, **more: str) -> dict[str, str]:
        """What a browser is sent to us with."""
        return {
            "iss": self.url,
            "login_hint": "hint",
            "target_link_uri": f"{self.tool}/lti/launch",
            "client_id": CLIENT_ID,
            "lti_message_hint": "message",
            **more,
        }

    def claims(self, nonce: str, subject: str = "u1", role: str = "Learner", **more: Any) -> dict[str, Any]:
        """A true launch of one person; `more` replaces claims, None takes one away."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": subject,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            "name": f"Person {subject}",
            "email": f"{subject}@school.example",
            f"{CLAIM}message_type": "LtiResourceLinkRequest",
            f"{CLAIM}version": "1.3.0",
            f"{CLAIM}deployment_id": DEPLOYMENT,
            f"{CLAIM}target_link_uri": f"{self.tool}/lti/launch",
            f"{CLAIM}roles": [f"{ROLE}{role}"],
            f"{CLAIM}resource_link": {"id": "link-1", "title": "A link"},
            f"{CLAIM}context": {"id": "course-7", "title": "Parallel programming"},
            GRADES: {"scope": SCOPES[:2], "lineitems": f"{self.url}/items"},
            ROSTER: {"context_memberships_url": f"{self.url}/members", "service_versions": ["2.0"]},
            **more,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def deep_linking(self, nonce: str, subject: str = "t1", **settings: Any) -> dict[str, Any]:
        """A launch in which an instructor chooses content."""
        asked = {
            "deep_link_return_url": f"{self.url}/chosen",
            "accept_types": ["ltiResourceLink"],
            "accept_presentation_document_targets": ["window"],
            "data": "back-to-you",
            **settings,
        }
        more = {
            f"{CLAIM}message_type": "LtiDeepLinkingRequest",
            f"{CLAIM}resource_link": None,
            f"{DEEP_LINKING}deep_linking_settings": asked,
        }
        return self.claims(nonce, subject, "Instructor", **more)

    def sign(self, claims: dict[str, Any], key: RSAKey | None = None, kid: str | None = None) -> str:
        """An ID token as the platform makes it."""
        key = key or self.key
        return jwt.encode({"alg": "RS256", "kid": kid or key.kid}, claims, key)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/auth", self._auth),
                Route("/keys", self._keys),
                Route("/token", self._token, methods=["POST"]),
                Route("/members", self._members),
                Route("/items", self._items, methods=["GET", "POST"]),
                Route("/items/{number}", self._item),
                Route("/items/{number}/scores", self._scores, methods=["POST"]),
                Route("/configuration", self._configuration),
                Route("/register", self._register, methods=["POST"]),
            ]
        )

    def _fault(self, service: str, *, after: bool = False) -> Response | None:
        waiting = self.faults.get(service, [])
        if not waiting or waiting[0].after is not after:
            return None
        fault = waiting[0]
        fault.times -= 1
        if not fault.times:
            waiting.pop(0)
        return JSONResponse({"error": "broken"}, fault.status, fault.headers)

    async def _auth(self, request: Request) -> Response:
        """Send a browser back with who its hint names, as `subject/role`, by a form that sends itself."""
        asked = request.query_params
        subject, _, role = asked["login_hint"].partition("/")
        token = self.sign(self.claims(asked["nonce"], subject, role or "Learner"))
        return HTMLResponse(
            f'<body onload="document.forms[0].submit()"><form method="post" action="{asked["redirect_uri"]}">'
            f'<input name="state" value="{asked["state"]}"><input name="id_token" value="{token}"></form>'
        )

    async def _keys(self, request: Request) -> Response:
        self.calls.append("keys")
        return self._fault("keys") or JSONResponse(
            {"keys": [dict(one.as_dict(private=False)) for one in self.published]}
        )

    async def _token(self, request: Request) -> Response:
        self.calls.append("token")
        fault = self._fault("token")
        if fault is not None:
            return fault
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        try:
            keys = KeySet.import_key_set(self.tool_keys())  # type: ignore[arg-type]
            claims = jwt.decode(form["client_assertion"], keys, algorithms=["RS256"]).claims
        except (JoseError, KeyError, ValueError):
            return JSONResponse({"error": "invalid_client"}, 400)
        good = (
            form.get("grant_type") == "client_credentials"
            and form.get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            and claims["iss"] == claims["sub"] == CLIENT_ID
            and claims["aud"] == f"{self.url}/token"
            and claims["iat"] <= time.time() + 5 < claims["exp"]
            and claims["jti"] not in self.assertions
        )
        wanted = set(form.get("scope", "").split())
        if not good or not wanted or not wanted <= set(SCOPES):
            return JSONResponse({"error": "invalid_client" if not good else "invalid_scope"}, 400)
        self.assertions.add(claims["jti"])
        token = f"token-{len(self.assertions)}"
        self.tokens[token] = wanted
        return JSONResponse({"access_token": token, "token_type": "bearer", "expires_in": 3600})

    def _allowed(self, request: Request, scope: str) -> Response | None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if scope in self.tokens.get(token, set()):
            return None
        return JSONResponse({"error": "unauthorized"}, 401)

    async def _members(self, request: Request) -> Response:
        self.calls.append("members")
        refused = self._fault("members") or self._allowed(request, NRPS_SCOPE)
        if refused is not None:
            return refused
        start = int(request.query_params.get("from", "0"))
        end = start + self.page
        headers = {"content-type": "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"}
        if end < len(self.members):
            headers["link"] = f'<{self.url}/members?from={end}>; rel="next"'
        body = {"id": str(request.url), "context": {"id": "course-7"}, "members": self.members[start:end]}
        return Response(json.dumps(body), headers=headers)

    async def _items(self, request: Request) -> Response:
        self.calls.append(f"{request.method} items")
        refused = self._fault("items") or self._allowed(request, f"{AGS}lineitem")
        if refused is not None:
            return refused
        if request.method == "GET":
            wanted = request.query_params.get("resource_id")
            return JSONResponse(
                [one for one in self.line_items.values() if wanted in (None, one.get("resourceId"))]
            )
        assert request.headers["content-type"] == ITEM_TYPE
        item = await request.json()
        if not item.get("label") or not item.get("scoreMaximum", 0) > 0:
            return JSONResponse({"error": "no column"}, 400)
        return self._fault("items", after=True) or JSONResponse(self.add_item(item), 201)

    def add_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """A column; its address has a query, as those of Moodle have."""
        number = len(self.line_items) + 1
        made = {**item, "id": f"{self.url}/items/{number}?type_id=3"}
        self.line_items[str(number)] = made
        self.scores.setdefault(str(number), [])
        return made

    async def _item(self, request: Request) -> Response:
        refused = self._fault("item") or self._allowed(request, f"{AGS}lineitem")
        found = self.line_items.get(request.path_params["number"])
        return refused or (JSONResponse(found) if found else JSONResponse({"error": "gone"}, 404))

    async def _scores(self, request: Request) -> Response:
        self.calls.append("scores")
        refused = self._fault("scores") or self._allowed(request, f"{AGS}score")
        if refused is not None:
            return refused
        number = request.path_params["number"]
        if number not in self.line_items or request.query_params.get("type_id") != "3":
            return JSONResponse({"error": "no such column"}, 404)
        assert request.headers["content-type"] == SCORE_TYPE
        said = await request.json()
        if not {"userId", "timestamp", "activityProgress", "gradingProgress"} <= set(said) or (
            "scoreGiven" in said and not said.get("scoreMaximum", 0) > 0
        ):
            return JSONResponse({"error": "no score"}, 422)
        before = [one["timestamp"] for one in self.scores[number] if one["userId"] == said["userId"]]
        if before and said["timestamp"] <= max(before):
            return JSONResponse({"error": "older than what is there"}, 409)
        self.scores[number].append(said)
        return self._fault("scores", after=True) or Response(status_code=204)

    async def _configuration(self, request: Request) -> Response:
        self.calls.append("configuration")
        return self._fault("configuration") or JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "registration_endpoint": f"{self.url}/register",
                "https://purl.imsglobal.org/spec/lti-platform-configuration": {
                    "product_family_code": "moodle"
                },
            }
        )

    async def _register(self, request: Request) -> Response:
        fault = self._fault("register")
        if fault is not None:
            return fault
        if request.headers.get("authorization") != "Bearer platform-token":
            return JSONResponse({"error": "unauthorized"}, 401)
        asked = await request.json()
        self.registered.append(asked)
        tool = "https://purl.imsglobal.org/spec/lti-tool-configuration"
        return JSONResponse(
            {**asked, "client_id": "made-for-you", tool: {**asked[tool], "deployment_id": "42"}}, 201
        )

    def told(self, subject: str) -> list[dict[str, Any]]:
        """What it was told of one person, in all columns, oldest first."""
        found = [one for taken in self.scores.values() for one in taken if one["userId"] == subject]
        return sorted(found, key=lambda one: str(one["timestamp"]))


@contextmanager
def running_platform(tool_keys: Callable[[], dict[str, Any]]) -> Iterator[TestPlatform]:
    """A platform on a free port."""
    platform = TestPlatform("", tool_keys)
    with serving(platform.app()) as url:
        platform.url = url
        yield platform


def query(url: str) -> dict[str, str]:
    """The fields of an address."""
    return {name: values[0] for name, values in parse_qs(url.partition("?")[2]).items()}


def address(path: str, **fields: str) -> str:
    return f"{path}?{urlencode(fields)}"
