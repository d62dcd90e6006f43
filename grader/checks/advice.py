"""What a finding advises, where a rule has seen its fault both in the run and in the text."""

from __future__ import annotations

from grader.checks.rule import Hit
from grader.model.fix import Fix


def advice_for(seen: Hit, hits: tuple[Hit, ...]) -> tuple[str, Fix | None]:
    """What to write about what was seen in a run, in words and as edits, both from one place.

    Where only the source knows the edits, its words stand beside them: of a hit on the same line, else of the first.
    """
    if seen.fix is not None:
        return seen.hint, seen.fix
    lines = {(place.path, place.line) for place in seen.where}
    having = sorted((h for h in hits if h.fix), key=lambda h: not lines & {(p.path, p.line) for p in h.where})
    if having:
        return having[0].hint or seen.hint, having[0].fix
    return seen.hint or next((h.hint for h in hits if h.hint), ""), None
