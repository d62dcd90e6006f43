"""How long attempts take: assumed from two figures, or as this site's own attempts did. Plays nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.settings import settings
from grader.store.database import Store
from grader.store.tables import AttemptRow, GradeRow
from grader.store.tables.attempt import AttemptState

_MOST = 500
_FEWEST = 5
# Nothing takes exactly as long twice: shares of the assumed figure, as busy machines spread them.
_SPREAD = (0.85, 1.2)


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds from claim to grade that attempts may take, drawn from evenly.

    Attributes:
        whole: of attempts that run to their end; ended: of those that fail and are ended early.
        source: where these come from, for people.
    """

    whole: tuple[float, ...]
    ended: tuple[float, ...]
    source: str

    @classmethod
    def assumed(cls, whole_s: float, gate_s: float) -> Durations:
        """A whole attempt takes about `whole_s`, one that its smoke run ends about `gate_s`."""
        low, high = _SPREAD
        shares = [low + (high - low) * step / 20 for step in range(21)]
        return cls(
            tuple(whole_s * share for share in shares),
            tuple(gate_s * share for share in shares),
            f"assumed: about {whole_s:g} s whole, {gate_s:g} s where the smoke run ends it",
        )

    def draw(self, rng: random.Random, *, fails: bool) -> float:
        """One attempt's seconds."""
        return rng.choice(self.ended if fails else self.whole)


def recorded(task: str) -> Durations:
    """What the last attempts at a task took on this site, by the service's database.

    Raises:
        UsageError: too few were judged there to draw from.
    """
    store = Store(settings().database)
    try:
        with store.read() as connection:
            rows = connection.execute(
                select(AttemptRow.claimed_at, AttemptRow.finished_at, GradeRow.verdict)
                .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
                .where(
                    AttemptRow.task == task,
                    AttemptRow.state == AttemptState.JUDGED,
                    AttemptRow.claimed_at.is_not(None),
                )
                .order_by(AttemptRow.id.desc())
                .limit(_MOST)
            ).all()
    finally:
        store.close()
    spans = [
        (verdict is Verdict.ACCEPTED, (finished - claimed).total_seconds())
        for claimed, finished, verdict in rows
        if claimed is not None and finished is not None
    ]
    whole, ended = _of(spans, accepted=True), _of(spans, accepted=False)
    if min(len(whole), len(ended)) < _FEWEST:
        raise UsageError(
            f"{len(whole)} accepted and {len(ended)} other attempts at {task} were judged here; a rehearsal draws from "
            f"{_FEWEST} of each at least. Leave --recorded out and say --whole and --gate"
        )
    return Durations(
        whole, ended, f"recorded: {len(whole)} accepted and {len(ended)} other attempts at {task}"
    )


def _of(spans: Sequence[tuple[bool, float]], *, accepted: bool) -> tuple[float, ...]:
    return tuple(sorted(seconds for was, seconds in spans if was is accepted))
