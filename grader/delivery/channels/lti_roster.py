"""Lists of people on their way from a learning platform: read when staff asks for it, and every day."""

from __future__ import annotations

from grader.delivery.channel import DeliveryContext
from grader.delivery.failures import DeliveryRefusedError
from grader.delivery.platform_services import failure, services_of
from grader.lti.platform_http import PlatformError
from grader.lti.roster import read_roster
from grader.settings.schema import Settings
from grader.store.delivery.deliveries import Delivery
from grader.store.lti.lti_contexts import context as read_context
from grader.store.lti.lti_rosters import note_roster_problem, schedule_roster, take_roster


def missing(settings: Settings) -> str:  # noqa: ARG001 - the shape of a channel
    """Nothing: which platforms there are stands in the database."""
    return ""


def deliver(context: DeliveryContext, delivery: Delivery) -> str:
    """Read a course's list of people and take it over; raises what `failures` holds."""
    found = read_context(context.store, int(delivery.payload["context_id"]))
    if found is None or found.facts.members_url is None:
        raise DeliveryRefusedError(
            "the course is connected no more, or the platform shows no list of its people"
        )
    # First, so that whatever becomes of today's list there is one tomorrow.
    schedule_roster(context.store, found.id)
    services = services_of(context, found.facts.platform_id)
    try:
        members = read_roster(services, found.facts.members_url)
    except PlatformError as error:
        note_roster_problem(context.store, found.id, str(error))
        raise failure(error) from None
    num_new = take_roster(context.store, found, services.platform, members)
    return f"{len(members)} people, {num_new} of them new"
