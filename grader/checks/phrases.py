"""How observations name ranks, counts and places, so that every rule's sentence reads the same.

Words only; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grader.model.call_site import Site
from grader.model.finding import Location

if TYPE_CHECKING:
    from grader.model.run import Frame


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 epoch`, `1,437 indices`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def every(number: int, noun: str) -> str:
    """`the one step`, `all 12 steps`."""
    return f"the one {noun}" if number == 1 else f"all {number:,} {noun}s"


def listed(items: Iterable[object], limit: int = 8) -> str:
    """`0, 1 and 2`; long lists end in `… (n in all)`."""
    words = [str(i) for i in items]
    if len(words) > limit:
        return f"{', '.join(words[:limit])}, … ({len(words)} in all)"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def ranks(numbers: Iterable[int]) -> str:
    """`Rank 1`, `Ranks 0 and 1`."""
    found = sorted(set(numbers))
    return f"{'Rank' if len(found) == 1 else 'Ranks'} {listed(found)}"


def epochs(numbers: Iterable[int]) -> str:
    """`epoch 0`, `epochs 0 and 1`, `epochs 0 to 9`."""
    found = sorted(set(numbers))
    if len(found) > 2 and found == list(range(found[0], found[-1] + 1)):
        return f"epochs {found[0]} to {found[-1]}"
    return f"{'epoch' if len(found) == 1 else 'epochs'} {listed(found)}"


def place(site: Site | Frame | None) -> tuple[Location, ...]:
    """A call site as a place in the submission; empty where the trace knows none."""
    return (Location(site.path, site.line),) if site is not None and site.line > 0 and site.path else ()


def places(sites: Iterable[Site | Frame | None]) -> tuple[Location, ...]:
    """Call sites as places, each once, in the order given."""
    return tuple(dict.fromkeys(location for site in sites for location in place(site)))


def at(site: Site | Frame | None, otherwise: str = "The script") -> str:
    """The place as the subject of a sentence: `` `train.py:41` ``, or the words given for an unknown one."""
    return f"`{site.path}:{site.line}`" if place(site) and site is not None else otherwise


def share(part: int, whole: int) -> str:
    """`42 %`, never rounded to 0 % or 100 % unless it is."""
    if whole <= 0:
        return "0 %"
    percent = round(100 * part / whole)
    if part and not percent:
        return "under 1 %"
    return "over 99 %" if percent == 100 and part < whole else f"{percent} %"


def first_known(sites: Sequence[Site | None]) -> Site | None:
    """The first site that is known."""
    return next((s for s in sites if s is not None), None)


def continued(sentence: str) -> str:
    """A sentence after a colon."""
    plain = sentence[1:2].islower() or sentence[1:2] == " "
    return sentence[:1].lower() + sentence[1:] if plain else sentence


def told_once(where: Iterable[Location]) -> tuple[Location, ...]:
    """Each line once, as precisely as it is known."""
    found: dict[tuple[str, int], Location] = {}
    for one in where:
        known = found.setdefault((one.path, one.line), one)
        if one.column and not known.column:
            found[one.path, one.line] = one
    return tuple(found.values())
