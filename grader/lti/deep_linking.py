"""The answer to a platform that asked for content (Deep Linking 2.0): links to tasks, signed by us."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grader.lti.launch_message import CLAIM, DEEP_LINKING, VERSION, DeepLinkingSettings
from grader.lti.scores import line_item, timestamp
from grader.lti.tool_keys import ToolKeys
from grader.store.lti.lti_platforms import PlatformTerms

LINK = "ltiResourceLink"
TASK = "grader_task"
"""Name of the custom parameter that says which task of a course a link opens."""


@dataclass(frozen=True, slots=True)
class LinkedTask:
    """A task that a link shall open."""

    course_task_id: int
    title: str
    opens_at: datetime | None
    due_at: datetime | None


def answer(
    keys: ToolKeys,
    platform: PlatformTerms,
    deployment: str,
    asked: DeepLinkingSettings,
    items: Sequence[dict[str, Any]],
) -> str:
    """The signed message with these items for the platform that asked."""
    claims: dict[str, Any] = {
        "iss": platform.client_id,
        "aud": platform.issuer,
        "nonce": secrets.token_urlsafe(24),
        f"{CLAIM}message_type": "LtiDeepLinkingResponse",
        f"{CLAIM}version": VERSION,
        f"{CLAIM}deployment_id": deployment,
        f"{DEEP_LINKING}content_items": list(items),
    }
    if asked.data is not None:
        claims[f"{DEEP_LINKING}data"] = asked.data
    return keys.sign(claims)


def content_item(task: LinkedTask, launch_url: str, *, with_line_item: bool) -> dict[str, Any]:
    """A link to a task, which asks to be opened in a window of its own."""
    item: dict[str, Any] = {
        "type": LINK,
        "title": task.title,
        "url": launch_url,
        "custom": {TASK: str(task.course_task_id)},
        "window": {"targetName": "_blank"},
    }
    if task.opens_at is not None:
        item["available"] = {"startDateTime": timestamp(task.opens_at)}
    if task.due_at is not None:
        item["submission"] = {"endDateTime": timestamp(task.due_at)}
    if with_line_item:
        item["lineItem"] = line_item(task.title, task.course_task_id, task.due_at)
    return item
