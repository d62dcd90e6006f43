"""Where the probe saw an exception pass through the submission's own files."""

from __future__ import annotations

from grader.model.call_site import Site
from grader.model.trace import Event


def exception_places(event: Event) -> tuple[Site, ...]:
    """Sites of an EXCEPTION event, innermost first; whatever was told that is no site is left out."""
    told = event.fields.get("frames")
    return tuple(
        Site(*part)
        for part in (told if isinstance(told, list) else ())
        if isinstance(part, list) and [type(field) for field in part] == [str, int, str]
    )
