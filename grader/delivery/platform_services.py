"""A learning platform's services as channels ask them: with our key, and with what becomes of a delivery that fails."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.delivery.channel import DeliveryContext
from grader.delivery.failures import DeliveryFailedError, DeliveryRefusedError
from grader.lti.access_tokens import PlatformServices
from grader.lti.platform_http import PlatformError
from grader.lti.tool_keys import ToolKeys, tool_keys
from grader.store.lti.lti_platforms import platform as read_platform


def services_of(context: DeliveryContext, platform_id: int) -> PlatformServices:
    """The services of a platform, kept while there is something to deliver.

    Raises:
        DeliveryRefusedError: the platform is switched off or gone.
    """
    found = read_platform(context.store, platform_id)
    if found is None or not found.enabled:
        raise DeliveryRefusedError("the platform is switched off")
    keys = _keys(context.settings.lti_key, context.settings.state_dir)
    # Under its terms: once they are changed, it is asked as they say.
    kept: PlatformServices = context.keep(f"{found.terms}", lambda: PlatformServices(found.terms, keys))
    return kept


def failure(error: PlatformError) -> DeliveryFailedError | DeliveryRefusedError:
    """What becomes of a delivery that a platform did not take."""
    if error.passing:
        return DeliveryFailedError(str(error), retry_in_s=error.wait_s)
    return DeliveryRefusedError(str(error))


@cache
def _keys(given: str, folder: Path) -> ToolKeys:
    return tool_keys(given, folder)
