"""How a receiver knows who sent what it gets: the headers of Standard Webhooks (standardwebhooks.com), HMAC-SHA256.

Libraries of many languages check them; by hand it is ten lines. The secret follows from the service's own and is kept
nowhere.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

from grader.store.delivery.webhooks import Webhook

_PREFIX = "whsec_"


def webhook_secret(service_secret: str, hook: Webhook) -> str:
    """The secret of a receiver, as it is shown once: `whsec_` and 32 bytes as Base64."""
    made = hmac.new(service_secret.encode(), f"webhook:{hook.id}:{hook.salt}".encode(), hashlib.sha256)
    return _PREFIX + base64.b64encode(made.digest()).decode()


def signed_headers(secret: str, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Headers that name a message, its time in seconds since 1970 and its signature."""
    seconds = str(int(at.timestamp()))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = hmac.new(key, f"{message_id}.{seconds}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
