"""Grades on their way to a learning platform: what counts now for one person in one task, however old the message."""

from __future__ import annotations

from grader.delivery.channel import DeliveryContext
from grader.delivery.failures import DeliveryEarlyError, DeliveryFailedError, DeliveryRefusedError
from grader.delivery.platform_services import failure, services_of
from grader.lti.access_tokens import PlatformServices
from grader.lti.platform_http import PlatformError
from grader.lti.scores import find_line_item, is_gone, send_score
from grader.settings.schema import Settings
from grader.store.clock import now
from grader.store.database import Store
from grader.store.delivery.deliveries import Delivery
from grader.store.grading.gradebook import feedback_opens_at
from grader.store.lti.lti_scores import (
    ScoreMessage,
    forget_line_item,
    keep_line_item,
    score_sent,
    score_to_send,
)

THREADS = 2
_ANEW_S = 5.0


def missing(settings: Settings) -> str:  # noqa: ARG001 - the shape of a channel
    """Nothing: which platforms there are stands in the database."""
    return ""


def deliver(context: DeliveryContext, delivery: Delivery) -> str:
    """Tell the platform how somebody stands; raises what `failures` holds."""
    said = delivery.payload
    key = (int(said["context_id"]), int(said["person_id"]), int(said["course_task_id"]))
    _wait_until_told(context.store, course_task_id=key[2], person_id=key[1])
    told = score_to_send(context.store, *key, int(said["revision"]))
    if told is None:
        return "told with a later change, or there is nobody to be told any more"
    services = services_of(context, told.platform_id)
    try:
        if told.line_item_url is None:
            url = find_line_item(services, told)
            keep_line_item(context.store, told.context_id, told.course_task_id, url)
        else:
            url = told.line_item_url
        _send(context.store, services, url, told)
    except PlatformError as error:
        raise failure(error) from None
    score_sent(context.store, told)
    return told.says


def _send(store: Store, services: PlatformServices, url: str, told: ScoreMessage) -> None:
    try:
        send_score(services, url, told)
    except PlatformError as error:
        if error.status not in (404, 410):
            raise
        if is_gone(services, url, told.scopes):
            forget_line_item(store, told.context_id, told.course_task_id, url)
            raise DeliveryFailedError(
                "the platform has the column of this task no more; another one is found or made",
                retry_in_s=_ANEW_S,
            ) from None
        raise DeliveryRefusedError(f"{error}; perhaps the person takes part there no more") from None


def _wait_until_told(store: Store, *, course_task_id: int, person_id: int) -> None:
    """What learners are not told yet, no platform tells them either."""
    opens_at = feedback_opens_at(store, course_task_id, person_id)
    if opens_at is None:
        return
    with store.read() as connection:
        wait_s = (opens_at - now(connection)).total_seconds()
    raise DeliveryEarlyError("hidden until the task is due", for_s=max(1.0, wait_s + 1.0))
