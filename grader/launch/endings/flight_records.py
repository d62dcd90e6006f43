"""The collectives that each rank has begun and not ended, as torch's flight recorder knows them (see `probe`).

With NCCL a collective is begun and waited for at different lines, and the processor spins meanwhile: only these records
tell a rank that waits for others from one that computes. They come from the learner's process: who forges them loses a
run, and wins none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from grader.launch.ranks.streams import safe_text

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LARGEST = 1 << 53
_LONGEST_TEXT = 300
# Every rank brings as many elements to these.
_ALIKE = frozenset({"all_reduce", "barrier", "broadcast", "reduce"})


@dataclass(frozen=True, slots=True)
class RecordedCollective:
    """One collective of a group.

    Attributes:
        number: in the order of its group, from 1; name: as `torch.distributed` has it.
        elements: that this rank brings, None unknown.
        lines: path, line and function of the script's frames that led to it, innermost first; () unknown.
        of_backward: whether torch began it within a backward pass, which `lines` lead to.
    """

    number: int
    name: str
    elements: int | None
    lines: tuple[tuple[str, int, str], ...] = ()
    of_backward: bool = False

    @property
    def operation(self) -> str:
        """What a rank waits in that waits for it."""
        return "DDP gradient all-reduce" if self.of_backward and self.name == "all_reduce" else self.name

    def fits(self, other: RecordedCollective) -> bool:
        """Whether two ranks called the same."""
        if self.name != other.name:
            return False
        return self.name not in _ALIKE or self.elements == other.elements


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """What one rank did in one group; fields as in `probe.flight_recorder`."""

    group: str
    ranks: tuple[int, ...]
    enqueued: int
    first: RecordedCollective | None
    recent: tuple[RecordedCollective, ...]
    counts: Mapping[str, int]

    def at(self, number: int) -> RecordedCollective | None:
        """The collective of that number, None where it is not known any more."""
        return next(
            (one for one in (*self.recent, *([self.first] if self.first else ())) if one.number == number),
            None,
        )


FlightRecord = tuple[GroupRecord, ...]
"""Of one rank, group by group."""


def _waits_for(record: FlightRecord | None) -> GroupRecord | None:
    """A group in which this rank has begun what is not over; None for none."""
    return next((group for group in record or () if group.first is not None), None)


def on_device(record: FlightRecord | None) -> bool:
    """Whether collectives run on a GPU, whose waiting shows in no processor time."""
    return any(group.group.startswith("nccl") for group in record or ())


def stuck(rank: int, records: Mapping[int, FlightRecord | None]) -> bool:
    """Whether a rank waits for collectives of which none comes about unless another rank moves.

    One that all members have begun alike may be queued behind a long kernel. One that a member has not begun, or that
    it takes for another one, ends only if that member moves.

    Args:
        rank: which; records: of all ranks that live.
    """
    waiting = [group for group in records.get(rank) or () if group.first is not None]
    return bool(waiting) and not any(_met(group, records) for group in waiting)


def _met(mine: GroupRecord, records: Mapping[int, FlightRecord | None]) -> bool:
    first = mine.first
    for rank in mine.ranks or records:
        theirs = _of_group(records.get(rank), mine.group)
        if first is None or theirs is None or theirs.enqueued < first.number:
            return False
        other = theirs.at(first.number)
        if other is not None and not first.fits(other):
            return False
    return True


def _of_group(record: FlightRecord | None, group: str) -> GroupRecord | None:
    return next((one for one in record or () if one.group == group), None)


def held_by(rank: int, records: Mapping[int, FlightRecord | None]) -> RecordedCollective | None:
    """The collective that a rank has begun and cannot end by itself; None where it waits for none."""
    group = _waits_for(records.get(rank)) if stuck(rank, records) else None
    return group.first if group is not None else None


def tell(records: Mapping[int, FlightRecord | None], name: Mapping[int, str]) -> str:
    """A sentence: which collective each rank is in, and how far the others have come; "" where nobody waits.

    Args:
        records: of all ranks that live; name: what they are called, and those that have ended.
    """
    waited = next((group for record in records.values() if (group := _waits_for(record)) is not None), None)
    if waited is None or waited.first is None:
        return ""
    parts = []
    for rank in sorted(name):
        if rank not in records:
            parts.append(f"{name[rank]} has ended")
            continue
        theirs = _of_group(records[rank], waited.group)
        if theirs is None:
            continue
        if theirs.first is not None:
            parts.append(f"{name[rank]} is in {_named(theirs, theirs.first)}")
        else:
            made = theirs.counts.get(waited.first.name, 0) if theirs.counts and waited.counts else None
            parts.append(
                f"{name[rank]} has made {theirs.enqueued:,} collectives"
                if made is None
                else f"{name[rank]} has made {made:,}"
            )
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _named(group: GroupRecord, one: RecordedCollective) -> str:
    size = "" if one.elements is None else f" of {one.elements:,} element{'s' * (one.elements != 1)}"
    place = f", called at {one.lines[0][0]}:{one.lines[0][1]}" if one.lines else ""
    if group.counts:
        # Those behind it in the queue were begun, too.
        behind = sum(other.number > one.number and other.name == one.name for other in group.recent)
        return f"its {_ordinal(group.counts.get(one.name, 0) - behind)} {one.name}{size}{place}"
    return f"its {_ordinal(one.number)} collective, {one.name}{size}{place}"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"


# -- reading ----------------------------------------------------------------------------------------------------------


def read_answer(raw: bytes, asked: int) -> FlightRecord | None:
    """A rank's answer to the question of that number; None for any other bytes."""
    try:
        answer = json.loads(raw)
        if answer["asked"] != asked:
            return None
        return read_groups(answer["groups"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, AttributeError):
        return None


def read_groups(groups: Iterable[Mapping[str, Any]]) -> FlightRecord:
    """Groups as `probe.flight_recorder` tells them; raises ValueError, TypeError or KeyError for anything else."""
    return tuple(
        GroupRecord(
            group=_text(one["group"]),
            ranks=tuple(map(_number, one["ranks"])),
            enqueued=_number(one["enqueued"]),
            first=_collective(one["first"]) if one["first"] is not None else None,
            recent=tuple(map(_collective, one["recent"])),
            counts={_word(key): _number(value) for key, value in one["counts"].items()},
        )
        for one in groups
    )


def write_groups(record: FlightRecord) -> list[dict[str, Any]]:
    """What `read_groups` reads."""
    return [
        {
            "group": group.group,
            "ranks": list(group.ranks),
            "enqueued": group.enqueued,
            "first": list(astuple(group.first)) if group.first is not None else None,
            "recent": [list(astuple(one)) for one in group.recent],
            "counts": dict(group.counts),
        }
        for group in record
    ]


def _collective(told: list[Any]) -> RecordedCollective:
    number, name, elements, *rest = told
    lines, of_backward = rest or ((), False)
    return RecordedCollective(
        _number(number),
        _word(name),
        _number(elements) if elements is not None else None,
        tuple((_text(path), _number(line), _text(function)) for path, line, function in lines),
        of_backward is True,
    )


def _text(value: Any) -> str:
    return safe_text(str(value).encode(errors="replace"))[:_LONGEST_TEXT]


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError("not a number that a recorder gives")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("not a name that a recorder gives")
    return value
