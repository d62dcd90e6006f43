"""What all routes share: the store, the files, the secret, the templates. Made once, never changed.

`render` is the one way to a page: it adds the forgery token, the visitor, and the message left by the page before.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import HTMLResponse

from grader.lti.tool_keys import ToolKeys, tool_keys
from grader.settings.schema import Settings
from grader.store.attempts.limits import Refusal
from grader.store.attempts.retention import RetentionRule
from grader.store.attempts.submissions import NewSubmission, Receipt, submit_all
from grader.store.database import Store
from grader.store.files import FileStore, open_files
from grader.store.people.tokens import TokenUse, check_tokens
from grader.store.queue.queue import QueuePlace
from grader.web import flash
from grader.web.lookups.batcher import Batcher
from grader.web.lookups.queue_positions import QueuePositions
from grader.web.lookups.tab_facts import tab_facts
from grader.web.lookups.until_next_event import UntilNextEvent
from grader.web.monitoring.request_metrics import RequestMetrics
from grader.web.page_zone import in_zone
from grader.web.security import csrf
from grader.web.security.rate_limits import RateLimit, RateLimiter
from grader.web.security.sealed_text import SealedText
from grader.web.security.secret_key import service_secret
from grader.web.security.sessions import Sessions
from grader.web.sign_on.openid_client import OpenIdClient
from grader.web.sign_on.pending import PendingSignOns
from grader.web.sign_on.provider import SignOnSettings
from grader.web.sign_on.provider_file import load_sign_on
from grader.web.templating import environment

_OWN_NAMES = ("localhost", "127.0.0.1", "::1", socket.gethostname().casefold())


@dataclass(frozen=True)
class WebService:
    """One service.

    Attributes:
        store, files: where everything lies.
        secret: what cookies are signed with.
        public_url: `https://host` as people type it; "": a name of this machine.
        trusted_proxies: addresses whose word for the client's address is taken.
        max_upload_bytes: size of a whole request.
        submits: how often one account, and one address, may hand in.
        metrics_token: opens `/metrics` to others than this machine; "": nothing does.
        lti_key: keys for learning platforms as PEM; "": one is made and kept.
        state_dir: the folder whose disk must not be full.
        sign_on: who else vouches for people, and whether passwords of ours open anything.
        retention: how long the site keeps things, whatever a course says.
    """

    store: Store
    files: FileStore
    secret: str
    state_dir: Path
    public_url: str = ""
    trusted_proxies: str = ""
    max_upload_bytes: int = 8 << 20
    submit_limit: RateLimit = RateLimit("submissions of one account", 30, 60)  # noqa: RUF009 - frozen
    submit_limit_address: RateLimit = RateLimit("submissions from one address", 1200, 60)  # noqa: RUF009 - frozen
    metrics_token: str = ""
    lti_key: str = ""
    sign_on: SignOnSettings = SignOnSettings()  # noqa: RUF009 - frozen
    retention: RetentionRule = field(default_factory=RetentionRule)
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    request_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    templates: Environment = field(default_factory=environment)
    roster_job: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one thread of this process that takes lists of people over."""

    @cached_property
    def sessions(self) -> Sessions:
        """The cookies of this service."""
        return Sessions(self.secret)

    @cached_property
    def tool_keys(self) -> ToolKeys:
        """By which learning platforms know us.

        Raises:
            UsageError: what was given is no key.
        """
        return tool_keys(self.lti_key, self.state_dir)

    @cached_property
    def openid_clients(self) -> Mapping[str, OpenIdClient]:
        """Asks the providers of sign-on, each by its id."""
        return {one.id: OpenIdClient(one) for one in self.sign_on.providers}

    @cached_property
    def pending_sign_ons(self) -> PendingSignOns:
        """The sign-ons that have begun in browsers."""
        return PendingSignOns(self.secret)

    @cached_property
    def one_time_passwords(self) -> SealedText:
        """Seals one-time passwords that are kept until they are used."""
        return SealedText(self.secret, "one-time passwords")

    @cached_property
    def intake(self) -> Batcher[NewSubmission, Receipt | Refusal]:
        """Takes submissions."""
        return Batcher(partial(submit_all, self.store), name="intake", apart=lambda one: one.person_id)

    @cached_property
    def tokens(self) -> Batcher[str, TokenUse | None]:
        """Says what a token opens."""
        return Batcher(partial(check_tokens, self.store), name="tokens")

    @cached_property
    def _queue_positions(self) -> QueuePositions:
        return QueuePositions(self.store)

    def queue_positions(self) -> Mapping[int, QueuePlace]:
        """Every waiting attempt's place in the queue, at most a second old."""
        return self._queue_positions.current()

    @cached_property
    def until_next_event(self) -> UntilNextEvent:
        """What a course is at the moment, for all who look at it."""
        return UntilNextEvent(self.store)

    def secure(self, request: Request) -> bool:
        """Whether browsers reach us by HTTPS, so that cookies must not travel otherwise."""
        return (self.public_url or str(request.url)).startswith("https://")

    def origin(self, request: Request) -> str:
        """`https://host` as the browser knows us."""
        parts = urlsplit(self.public_url or str(request.url))
        return f"{parts.scheme}://{parts.netloc}"

    def site(self, request: Request) -> str:
        """`https://host` of this service for links that are given away: never a name that merely the request brought.

        Without a public address that is what the browser asked for, if it is a name of this machine; any other name
        could be somebody else's, and the address that the request came in at stands for it.
        """
        asked, reached = urlsplit(self.origin(request)), request.scope.get("server")
        host, port = reached if reached is not None and reached[1] is not None else ("localhost", None)
        if self.public_url or asked.hostname in (*_OWN_NAMES, host):
            return self.origin(request)
        host = f"[{host}]" if ":" in host else host
        return f"{asked.scheme}://{host}" if port is None else f"{asked.scheme}://{host}:{port}"

    def address(self, request: Request) -> str:
        """The client's address, "" where there is none (a socket of this machine)."""
        return request.client.host if request.client is not None else ""

    def csrf_token(self, request: Request) -> str:
        """The forgery token of the visitor; a guest gets a cookie for it with the page."""
        if getattr(request.state, "nonce", None) is None:
            request.state.nonce = request.state.new_guest = secrets.token_urlsafe(16)
        return csrf.token(self.secret, request.state.nonce)

    def render(
        self,
        request: Request,
        template: str,
        *,
        visitor: Any = None,
        status_code: int = 200,
        headers: dict[str, str] | None = None,
        zone: tzinfo | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """A page from a template.

        Args:
            request: of the visitor.
            template: its name below `templates/`.
            visitor: None: a guest.
            status_code: of the answer; headers: more of them.
            zone: that all its times are in; None: the browser chooses.
            context: what the template shows. It has `request`, `visitor`, `path`, `csrf_token()`, `csrf_field()`,
                `tab_facts(course_id, learners)` and `message` (of the page before, or None) besides.
        """

        def token() -> str:
            return self.csrf_token(request)

        def form_field() -> Markup:
            return Markup('<input type="hidden" name="{}" value="{}">').format(csrf.FIELD, token())

        message = flash.read(request, self.secret)
        with in_zone(zone):
            text = self.templates.get_template(template).render(
                request=request,
                path=request.url.path,
                visitor=visitor,
                csrf_token=token,
                csrf_field=form_field,
                message=message,
                tab_facts=lambda *of: self.until_next_event.of(tab_facts, *of),
                **context,
            )
        response = HTMLResponse(text, status_code, headers)
        if message is not None:
            flash.clear(response)
        if getattr(request.state, "new_guest", None) is not None:
            self.sessions.start_guest(response, request.state.new_guest, secure=self.secure(request))
        return response


def open_service(settings: Settings, store: Store | None = None) -> WebService:
    """The service that the settings describe; `store`: one that is open already.

    Raises:
        UsageError: the secret is too short, or the file of providers of sign-on has to be mended.
    """
    store = Store(settings.database) if store is None else store
    return WebService(
        store=store,
        files=open_files(store, settings.file_store, settings.state_dir / "files"),
        secret=service_secret(settings.secret_key, settings.state_dir),
        state_dir=settings.state_dir,
        public_url=settings.public_url.rstrip("/"),
        trusted_proxies=settings.trusted_proxies,
        max_upload_bytes=settings.max_upload_bytes,
        submit_limit=RateLimit("submissions of one account", settings.submits_per_minute, 60),
        submit_limit_address=RateLimit("submissions from one address", settings.submits_per_minute * 40, 60),
        metrics_token=settings.metrics_token,
        lti_key=settings.lti_key,
        sign_on=load_sign_on(settings.sign_on),
        retention=RetentionRule.of_site(settings.evidence_days, settings.scripts_days),
        rate_limiter=RateLimiter(settings.broker),
    )


async def current_service(request: Request) -> WebService:
    """The service that a request came to."""
    service: WebService = request.app.state.service
    return service


ServiceDep = Annotated[WebService, Depends(current_service)]
