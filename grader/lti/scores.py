"""Telling a platform a grade (Assignment and Grade Services 2.0): its column is found or made, then the score sent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from grader.lti.access_tokens import PlatformServices
from grader.lti.platform_http import PlatformError
from grader.model.grade import Verdict
from grader.store.lti.lti_scores import SCORE_SCOPE, ScoreMessage

LINE_ITEM_SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem"
FULL_MARKS = 100.0
"""Of a column. What counts for a task is told as points of the points that could be had; platforms reckon with the
share."""
_ITEM = "application/vnd.ims.lis.v2.lineitem+json"
_ITEMS = "application/vnd.ims.lis.v2.lineitemcontainer+json"
_SCORE = "application/vnd.ims.lis.v1.score+json"
_MOST_LABEL = 200


def line_item(title: str, course_task_id: int, due_at: datetime | None) -> dict[str, Any]:
    """A column for a task, as platforms are asked to make it."""
    due = {} if due_at is None else {"endDateTime": timestamp(due_at)}
    return {
        "scoreMaximum": FULL_MARKS,
        "label": title[:_MOST_LABEL],
        "resourceId": resource_id(course_task_id),
        **due,
    }


def resource_id(course_task_id: int) -> str:
    """What a task is called in a platform's columns."""
    return f"grader-task-{course_task_id}"


def timestamp(at: datetime) -> str:
    """A moment as the specifications write it: UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def find_line_item(services: PlatformServices, told: ScoreMessage) -> str:
    """The address of the platform's column for a task, made where there is none.

    Raises:
        PlatformError: it has none, and we may not or cannot make one.
    """
    if told.line_items_url is None or LINE_ITEM_SCOPE not in told.scopes:
        raise PlatformError(
            "the platform lets us make no column for this task: open the task's link there once, or allow the grader "
            "to manage columns",
            passing=False,
        )
    wanted = resource_id(told.course_task_id)
    found = services.ask(
        "GET",
        _with_query(told.line_items_url, resource_id=wanted),
        [LINE_ITEM_SCOPE],
        headers={"Accept": _ITEMS},
    )
    listed = found.json()
    for one in listed if isinstance(listed, list) else []:
        # Some platforms do not look at what they are asked for, and list all.
        if isinstance(one, dict) and one.get("resourceId") == wanted and isinstance(one.get("id"), str):
            return urljoin(found.url, str(one["id"]))
    made = services.ask(
        "POST",
        told.line_items_url,
        [LINE_ITEM_SCOPE],
        headers={"Accept": _ITEM, "Content-Type": _ITEM},
        content=line_item(told.title, told.course_task_id, told.due_at),
    )
    fields = made.json()
    if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
        raise PlatformError("the platform made a column and did not say where", passing=True)
    return urljoin(made.url, str(fields["id"]))


def send_score(services: PlatformServices, url: str, told: ScoreMessage) -> None:
    """Send one grade to the column at this address.

    Raises:
        PlatformError: the platform did not take it.
    """
    place = urlsplit(url)
    # The address of a column may have a query, which stays behind.
    scores = place._replace(path=f"{place.path.rstrip('/')}/scores").geturl()
    services.ask("POST", scores, [SCORE_SCOPE], headers={"Content-Type": _SCORE}, content=score(told))


def score(told: ScoreMessage) -> dict[str, Any]:
    """The message about a grade; points stand in it only where some count."""
    fields: dict[str, Any] = {"userId": told.subject, "timestamp": timestamp(told.at)}
    if told.verdict is None:
        # Without points: those that were told before are taken back.
        return {**fields, "activityProgress": "Initialized", "gradingProgress": "NotReady"}
    if told.verdict is Verdict.HELD:
        return {**fields, "activityProgress": "Submitted", "gradingProgress": "PendingManual"}
    if told.max_points <= 0:
        return {**fields, "activityProgress": "Submitted", "gradingProgress": "Failed"}
    return {
        **fields,
        "scoreGiven": round(told.points, 2),
        "scoreMaximum": round(told.max_points, 2),
        "activityProgress": "Completed",
        "gradingProgress": "FullyGraded",
    }


def is_gone(services: PlatformServices, url: str, scopes: Collection[str]) -> bool:
    """Whether the platform has that column no more; False where it cannot be told."""
    if LINE_ITEM_SCOPE not in scopes:
        return False
    try:
        services.ask("GET", url, [LINE_ITEM_SCOPE], headers={"Accept": _ITEM})
    except PlatformError as error:
        return error.status in (404, 410)
    return False


def _with_query(url: str, **more: str) -> str:
    parts = urlsplit(url)
    return parts._replace(query=urlencode([*parse_qsl(parts.query), *more.items()])).geturl()
