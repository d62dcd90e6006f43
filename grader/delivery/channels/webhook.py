"""Webhooks, by HTTP: verdicts and grades for other programs, signed, never to where a course's staff may not look."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import httpcore

from grader.delivery.channel import DeliveryContext
from grader.delivery.failures import DeliveryFailedError, DeliveryRefusedError
from grader.delivery.webhooks.event_body import event_body
from grader.delivery.webhooks.public_network import PublicNetwork
from grader.delivery.webhooks.signature import signed_headers, webhook_secret
from grader.settings.schema import Settings
from grader.store.courses.courses import course
from grader.store.delivery.deliveries import Delivery, rest_receiver
from grader.store.delivery.webhooks import Webhook, note_answer, webhook

THREADS = 4
_REST_S = 60.0
_LONGEST_WAIT_S = 3600.0


def deliver(context: DeliveryContext, delivery: Delivery) -> str:
    """Tell one receiver of one event."""
    hook = webhook(context.store, delivery.payload["webhook"])
    if hook is None:
        return "not sent: the webhook is removed"
    if hook.disabled_at is not None:
        raise DeliveryRefusedError("not sent: the webhook is disabled")
    try:
        answer = _send(context, delivery, hook)
    except (DeliveryFailedError, DeliveryRefusedError) as error:
        note_answer(context.store, hook.id, str(error))
        raise
    note_answer(context.store, hook.id, "")
    return answer


def _send(context: DeliveryContext, delivery: Delivery, hook: Webhook) -> str:
    found = course(context.store, hook.course_id)
    site = context.settings.public_url.rstrip("/")
    body = None if found is None else event_body(context.store, site, found, delivery)
    if body is None:
        return "not sent: whom it was about is gone"
    if not hook.url.startswith("https://") and not context.settings.webhook_private:
        raise DeliveryRefusedError("http:// would tell it to everybody on the way; give an https:// address")
    headers = {
        "content-type": "application/json",
        "user-agent": "grader-webhook/1",
        **signed_headers(webhook_secret(context.secret, hook), f"evt_{delivery.id}", datetime.now(UTC), body),
    }
    began = time.monotonic()
    try:
        status, wait_s = _post(context.settings, hook.url, headers, body)
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        rest_receiver(context.store, delivery, for_s=_REST_S)
        raise DeliveryFailedError(f"no answer: {str(error).strip() or type(error).__name__}"[:200]) from None
    answer = f"{status} in {time.monotonic() - began:.2f} s"
    if 200 <= status < 300:
        return answer
    if 300 <= status < 400:
        raise DeliveryRefusedError(f"{answer}: it leads elsewhere; give the address that it leads to")
    if status == 410:
        raise DeliveryRefusedError(f"{answer}: it wants no more of this")
    raise DeliveryFailedError(answer, retry_in_s=wait_s)


def _post(settings: Settings, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
    """Status of the answer, and when it wants to be asked again; what else it says is not read."""
    certificates = ssl.create_default_context()
    if settings.ca_file is not None:
        certificates.load_verify_locations(settings.ca_file)
    network = PublicNetwork(private=settings.webhook_private)
    with (
        httpcore.ConnectionPool(ssl_context=certificates, network_backend=network, retries=0) as pool,
        pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
    ):
        told = {name.lower(): value for name, value in response.headers}
        wait = told.get(b"retry-after", b"").decode("latin-1")
        wait_s = min(float(wait), _LONGEST_WAIT_S) if wait.isascii() and wait.isdigit() else None
        return response.status, wait_s
