"""How much of a sharded model was whole on one rank at once, as the first passes of its training showed."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.trace import Event, Trace


@dataclass(frozen=True, slots=True)
class Gathered:
    """The most that one rank held whole of what was given to `fully_shard`, but for the unit around all others.

    Attributes:
        backward: seen as a backward pass began; else as a training pass did.
        num_units: given to it. whole: ids of the wraps of those that were whole.
        elements, of: numbers in these, and in all of them.
        rooted: there is a unit around all others.
    """

    backward: bool
    num_units: int
    whole: tuple[int, ...]
    elements: int
    of: int
    rooted: bool

    @property
    def most(self) -> bool:
        """Whether most of the model was whole, and not the last block alone, which is needed again at once."""
        return len(self.whole) > 1 and 2 * self.elements > self.of


def gathered(trace: Trace) -> dict[int, Gathered]:
    """Rank → the most that it told of; ranks that told nothing of the kind are missing."""
    found = {}
    for rank in trace.ranks:
        told = [g for e in rank.events("gathered") if (g := _read(e)) is not None]
        if told:
            found[rank.rank] = max(told, key=lambda g: g.elements)
    return found


def _read(event: Event) -> Gathered | None:
    numbers = [event.fields.get(name) for name in ("units", "elements", "of")]
    wraps = event.fields.get("wraps")
    if not isinstance(wraps, list | tuple) or not all(type(n) is int and n >= 0 for n in (*numbers, *wraps)):
        return None
    num_units, elements, of = (int(n or 0) for n in numbers)
    backward, rooted = (event.fields.get(name) is True for name in ("backward", "rooted"))
    return Gathered(backward, num_units, tuple(wraps), elements, of, rooted)
