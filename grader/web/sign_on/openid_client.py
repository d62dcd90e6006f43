"""One provider asked by OpenID Connect: where to send people, and whom their code stands for.

Authorization code with PKCE. What is believed of an ID token is signed by one of the provider's own keys with an
algorithm of ours, for us, now, and for the browser that began.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

from authlib.common.urls import add_params_to_uri
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from grader.web.sign_on.problem import SignOnError, begin_again, not_believed, not_set_up
from grader.web.sign_on.provider import Provider
from grader.web.sign_on.provider_answers import ask, ask_for_object
from grader.web.sign_on.vouched_person import VouchedPerson, lacks, vouched_person

_log = logging.getLogger("grader.web")
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures that only the holder of a private key makes: never `none`, and never one that a public key could make."""
CLOCK_SKEW_S = 120
KEPT_S = 3600.0
"""What a provider says of itself, and its keys, is asked for again after that long; keys also where one is unknown."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a provider says of itself; "": it has no such address."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    end_session_endpoint: str
    algorithms: tuple[str, ...]
    names_itself: bool


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What one sign-on is bound to; all of it is made by us, for one browser."""

    redirect_uri: str
    state: str
    nonce: str
    code_verifier: str


class OpenIdClient:
    """Asks one provider; remembers what it says of itself, and nothing of any person."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def authorization_url(self, request: AuthorizationRequest, **more: str) -> str:
        """Where to send a browser.

        Raises:
            SignOnError: the provider does not say where.
        """
        metadata = await self.metadata()
        url: str = prepare_grant_uri(
            metadata.authorization_endpoint,
            client_id=self.provider.client_id,
            response_type="code",
            redirect_uri=request.redirect_uri,
            scope=" ".join(self.provider.scopes),
            state=request.state,
            nonce=request.nonce,
            code_challenge=create_s256_code_challenge(request.code_verifier),
            code_challenge_method="S256",
            **more,
        )
        return url

    async def sign_out_url(self, return_to: str) -> str | None:
        """Where somebody ends their session with the provider, too; None: it has no such place."""
        end = (await self.metadata()).end_session_endpoint
        if not end:
            return None
        params = {"client_id": self.provider.client_id, "post_logout_redirect_uri": return_to}
        url: str = add_params_to_uri(end, list(params.items()))
        return url

    @property
    def may_sign_out(self) -> bool:
        """Whether it has a place to sign out, as far as is known."""
        return self._metadata is None or bool(self._metadata[1].end_session_endpoint)

    async def identify(self, request: AuthorizationRequest, code: str, issuer: str | None) -> VouchedPerson:
        """Whom a code stands for; `issuer`: whom the browser brought it from, where it said so (RFC 9207).

        Raises:
            SignOnError: the provider does not answer, the code is no good, or what it says must not be believed.
        """
        metadata = await self.metadata()
        if issuer != self.provider.issuer and (issuer is not None or metadata.names_itself):
            raise self._doubt("the code came from another issuer")
        tokens = await self._exchange(metadata, request, code)
        claims = await self._claims(metadata, tokens, request.nonce)
        if lacks(self.provider, claims) and metadata.userinfo_endpoint:
            claims = {**await self._userinfo(metadata, tokens, str(claims["sub"])), **claims}
        person = vouched_person(self.provider, claims)
        if person is None:
            raise self._doubt("its subject is too long, or holds what nobody can read")
        return person

    async def metadata(self) -> Metadata:
        """What the provider says of itself.

        Raises:
            SignOnError: it says nothing, or what it must not; what it said before holds as long as it does not answer.
        """
        known = self._metadata
        if known is not None and time.monotonic() - known[0] < KEPT_S:
            return known[1]
        url = f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = self._read_metadata(await ask_for_object(self.provider.title, url))
        except SignOnError as error:
            if known is None:
                raise
            _log.warning("%s: what it said before still holds: %s", self.provider.id, error.reason)
            found = known[1]
        self._metadata = (time.monotonic(), found)
        return found

    def _read_metadata(self, told: Mapping[str, Any]) -> Metadata:
        if told.get("issuer") != self.provider.issuer:
            raise self._doubt("it calls itself otherwise than `issuer` in our file")

        def address(name: str, *, needed: bool = False) -> str:
            url = told.get(name)
            if url is None and not needed:
                return ""
            secure = urlsplit(self.provider.issuer).scheme == "https"
            if not isinstance(url, str) or urlsplit(url).scheme not in (
                ("https",) if secure else ("https", "http")
            ):
                raise self._doubt(f"its {name} is no address, or not https")
            return url

        signed = told.get("id_token_signing_alg_values_supported", ["RS256"])
        algorithms = tuple(one for one in ALGORITHMS if isinstance(signed, list) and one in signed)
        if not algorithms:
            raise self._doubt("it signs with no algorithm that we believe")
        return Metadata(
            authorization_endpoint=address("authorization_endpoint", needed=True),
            token_endpoint=address("token_endpoint", needed=True),
            jwks_uri=address("jwks_uri", needed=True),
            userinfo_endpoint=address("userinfo_endpoint"),
            end_session_endpoint=address("end_session_endpoint"),
            algorithms=algorithms,
            names_itself=told.get("authorization_response_iss_parameter_supported") is True,
        )

    async def _exchange(
        self, metadata: Metadata, request: AuthorizationRequest, code: str
    ) -> Mapping[str, Any]:
        provider = self.provider
        body = prepare_token_request(
            "authorization_code",
            code=code,
            redirect_uri=request.redirect_uri,
            code_verifier=request.code_verifier,
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        names = (provider.client_id, provider.client_secret)
        if provider.client_secret and provider.auth_method == "client_secret_basic":
            # RFC 6749, 2.3.1: both are written as in a form before they are put together.
            names = (quote_plus(names[0]), quote_plus(names[1]))
        method = provider.auth_method if provider.client_secret else "none"
        _, headers, body = ClientAuth(*names, method).prepare("POST", metadata.token_endpoint, headers, body)
        answer = await ask(provider.title, "POST", metadata.token_endpoint, headers=headers, body=body)
        error = answer.fields.get("error")
        if error == "invalid_grant":
            raise begin_again(f"{provider.id}: the code holds no longer")
        if error is not None or answer.status != 200:
            raise not_set_up(provider.title, f"its token endpoint says {answer.status} {_short(error)}")
        return answer.fields

    async def _claims(self, metadata: Metadata, tokens: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """What a token says, once everything about it is as it must be."""
        text = tokens.get("id_token")
        if not isinstance(text, str):
            raise self._doubt("there is no ID token")
        registry = JWSRegistry(algorithms=metadata.algorithms, strict_check_header=False)
        try:
            try:
                token = jwt.decode(text, await self._key_set(metadata), registry=registry)
            except InvalidKeyIdError:
                # It may have new keys.
                token = jwt.decode(text, await self._key_set(metadata, fresh=True), registry=registry)
            claims = CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": self.provider.issuer},
                    "aud": {"essential": True, "value": self.provider.client_id},
                    "sub": {"essential": True},
                },
                {
                    "nonce": nonce,
                    "client_id": self.provider.client_id,
                    "access_token": tokens.get("access_token"),
                },
            )
            claims.validate(leeway=CLOCK_SKEW_S)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            # Its words may repeat what was sent.
            raise self._doubt(f"its ID token: {type(error).__name__} {_claim(error)}".rstrip()) from None
        return dict(claims)

    async def _key_set(self, metadata: Metadata, *, fresh: bool = False) -> KeySet:
        known = self._keys
        if known is not None and not fresh and time.monotonic() - known[0] < KEPT_S:
            return known[1]
        told = await ask_for_object(self.provider.title, metadata.jwks_uri)
        listed = told.get("keys")
        signing = [
            one
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") in ("RSA", "EC")
        ]
        found = KeySet.import_key_set({"keys": signing})
        self._keys = (time.monotonic(), found)
        return found

    async def _userinfo(
        self, metadata: Metadata, tokens: Mapping[str, Any], subject: str
    ) -> Mapping[str, Any]:
        access = tokens.get("access_token")
        if not isinstance(access, str) or not access.isascii() or not access.isprintable():
            raise self._doubt("there is no access token to ask for the person's name with")
        shown = {"Authorization": f"Bearer {access}"}
        told = await ask_for_object(self.provider.title, metadata.userinfo_endpoint, headers=shown)
        if told.get("sub") != subject:
            raise self._doubt("its userinfo is about somebody else")
        return told

    def _doubt(self, reason: str) -> Exception:
        return not_believed(self.provider.title, f"{self.provider.id}: {reason}")


def _short(error: object) -> str:
    """An error's name for the log, whatever was sent in its place."""
    return error if isinstance(error, str) and error.replace("_", "").isalnum() and len(error) < 60 else ""


def _claim(error: Exception) -> str:
    return str(getattr(error, "claim", "") or "")
