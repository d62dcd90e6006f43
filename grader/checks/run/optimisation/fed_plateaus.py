"""What a `ReduceLROnPlateau` was given in a run, and whether its mode takes that getting better for a plateau."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from grader.checks.phrases import at, count, place, told_once
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.metrics.figure_kinds import ACCURACY, LOSS, kind_of, kind_of_name
from grader.checks.source.optimisation.plateau_modes import (
    WANTED,
    default_of,
    fed_at,
    hint_for,
    made_at,
    mode_of,
)
from grader.model.call_site import Site
from grader.model.finding import Severity
from grader.model.trace import Event, RankTrace

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

_FEWEST = 3
_ROUNDED = 6e-5
"""Half of the last of four digits, as people round what they write down."""


@dataclass(frozen=True, slots=True)
class FedPlateau:
    """One such schedule: what it was given and where, in which mode, and the rates before and after."""

    made: Site | None
    site: Site | None
    mode: str
    values: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def cuts(self) -> int:
        """How often it made the rate smaller."""
        return sum(b < a for a, b in zip(self.before, self.after, strict=True))


def wrong_mode_hit(evidence: Evidence, rank: RankTrace) -> Hit | None:
    """The finding about a schedule that made the rate smaller although the number that it was given got better."""
    script = evidence.script
    for fed in _fed(rank):
        kind, called, sure = _kind(evidence, fed)
        if not kind or fed.mode == WANTED[kind] or not fed.cuts:
            continue
        low = kind == LOSS
        best = min(fed.values) if low else max(fed.values)
        if best == fed.values[0]:
            continue  # it never got better: the rate was to become smaller
        made = made_at(script, fed.made)
        written = mode_of(script, made)[1] if made is not None else None
        default = default_of(made, written) if made is not None and written is not None else ""
        better = sum(b < a if low else b > a for a, b in pairwise(fed.values))
        return Hit(
            f"{at(fed.made)} makes `ReduceLROnPlateau` in mode `{fed.mode}`{default}, and {at(fed.site)} gives it "
            f"{called}, which is better the {'smaller' if low else 'larger'} it is. It came from {fed.values[0]:.3g} "
            f"to {best:.3g}, better than before in {better} of {count(len(fed.values) - 1, 'time')}, and counted as no "
            f"improvement: the learning rate was cut {count(fed.cuts, 'time')}, from {fed.before[0]:.3g} to "
            f"{fed.after[-1]:.3g}, while the training was still learning.",
            hint_for(script, made, written, kind)
            if made is not None and written is not None
            else f'Say what is better: make the schedule with `mode="{WANTED[kind]}"`.',
            told_once(
                (*lines(script, [written] if written is not None else []), *place(fed.site), *place(fed.made))
            ),
            severity=None if sure else Severity.HINT,
            details={"mode": fed.mode, "kind": kind, "cuts": fed.cuts, "values": list(fed.values[:64])},
        )
    return None


def _fed(rank: RankTrace) -> list[FedPlateau]:
    groups: dict[str, list[Event]] = {}
    for event in rank.events("plateau"):
        groups.setdefault(str(event.fields.get("made")), []).append(event)
    found = []
    for told in groups.values():
        rows = [row for event in told if (row := _numbers(event.fields)) is not None]
        if len(rows) == len(told) >= _FEWEST:
            values, before, after = zip(*rows, strict=True)
            mode, made = str(told[0].fields.get("mode")), _site(told[0].fields.get("made"))
            found.append(FedPlateau(made, told[0].site, mode, values, before, after))
    return found


def _numbers(fields: dict[str, Any]) -> tuple[float, float, float] | None:
    value, before, after = (fields.get(name) for name in ("value", "before", "after"))
    if isinstance(value, int | float) and isinstance(before, int | float) and isinstance(after, int | float):
        return float(value), float(before), float(after)
    return None


def _site(told: object) -> Site | None:
    known = (
        isinstance(told, list) and len(told) == 3 and isinstance(told[0], str) and isinstance(told[1], int)
    )
    return Site(told[0], told[1], str(told[2])) if known and isinstance(told, list) else None


def _kind(evidence: Evidence, fed: FedPlateau) -> tuple[str, str, bool]:
    """Whether it is a loss or an accuracy, as what the finding speaks of it, and whether that is known for sure.

    The report says it where it holds the same numbers in a row; else the text does.
    """
    reported = evidence.evaluation.reported if evidence.evaluation is not None else None
    epochs = reported.epochs if reported is not None else ()
    matching = {
        key for key in {k for e in epochs for k in e} if _in_a_row(fed.values, [e.get(key) for e in epochs])
    }
    kinds = {kind_of_name(key) for key in matching}
    if len(kinds) == 1 and (kind := kinds.pop()):
        return kind, f"what is reported as `{min(matching)}`", True
    given = fed_at(evidence.script, fed.site)
    if given is None:
        return "", "", False
    found = kind_of(evidence.script, given)
    called = "a loss" if found.kind == LOSS else f"an {ACCURACY}"
    return found.kind, f"{called}, {evidence.script.quote(given)}", found.sure


def _in_a_row(values: Sequence[float], told: Sequence[float | None]) -> bool:
    """Whether a report has numbers in their order, as they are or in percent, perhaps not from its first epoch on."""
    if len(set(values)) < _FEWEST or len(told) < len(values):
        return False
    for factor in (1.0, 100.0, 0.01):
        for first in range(len(told) - len(values) + 1):
            pairs = zip(values, told[first : first + len(values)], strict=True)
            if all(t is not None and abs(v - t * factor) <= _ROUNDED * max(1.0, factor) for v, t in pairs):
                return True
    return False
