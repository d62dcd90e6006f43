"""Training loops whose rounds are dealt out to the ranks, where some ranks got more of them than others.

What makes a number of rounds another one on each rank, such as `range(rank, 25, world_size)`, is often even: only a run
in which some ranks were through while others were in a step more shows that it is not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, listed
from grader.checks.phrases import ranks as ranks_of
from grader.checks.rule import Hit
from grader.checks.run.endings.left_loops import held_ranks, loops_around
from grader.checks.source.causes import made_of_rank
from grader.checks.source.script import Script
from grader.model.finding import Location
from grader.model.run import Frame, RankRecord

EVEN = (
    "Let every rank go through all rounds, each with its share of the samples of every round; or give all ranks "
    "equally many, the number of rounds divided by that of ranks and rounded down."
)


@dataclass(frozen=True, slots=True)
class DealtRounds:
    """One such loop.

    Attributes:
        where: what says which rounds are a rank's. sentence: what ranks did.
        gone: ranks that were through; waiting: ranks that were in a step more.
    """

    where: Location
    sentence: str
    gone: tuple[int, ...]
    waiting: tuple[int, ...]

    def hit(self, why: str) -> Hit:
        """The finding about it; `why` it matters."""
        return Hit(f"{self.sentence} {why}", EVEN, (self.where,), ranks=(*self.gone, *self.waiting))


def dealt_rounds(evidence: Evidence) -> DealtRounds | None:
    """The loop in which ranks waited for a step that others did not have; None where none deals its rounds out."""
    held = held_ranks(evidence)
    script, steps = evidence.script, {rank.rank: len(rank.steps) for rank in evidence.trace.ranks}
    for record in held:
        for loop in _loops(script, _frames(record)):
            gone = [r for r in evidence.record.ranks if r is not record and _through(script, r, loop)]
            waiting = [r for r in held if r not in gone and loop in _loops(script, _frames(r))]
            most = max((steps[r.rank] for r in gone), default=0)
            if not most or any(steps[r.rank] < most for r in waiting):
                continue
            taken = listed(f"{count(steps[r.rank], 'step')} on rank {r.rank}" for r in gone)
            sentence = (
                f"{script.at(loop)} deals the rounds of the training loop out to the ranks, {script.quote(loop.iter)}: "
                f"it was over after {taken}, and {ranks_of(r.rank for r in waiting).lower()} went into step "
                f"{most + 1:,}."
            )
            return DealtRounds(
                script.location(loop.iter),
                sentence,
                tuple(r.rank for r in gone),
                tuple(r.rank for r in waiting),
            )
    return None


def _frames(record: RankRecord) -> list[Frame]:
    told = record.waiting or record.failure
    return [frame for frame in told.frames if frame.in_submission] if told is not None else []


def _loops(script: Script, frames: list[Frame]) -> list[ast.For]:
    """Training loops around a rank's place whose rounds are made of the rank, the innermost first."""
    loaders = {draw.loop for draw in script.training.draws}
    return [
        loop
        for frame in frames
        for loop in sorted(loops_around(script, frame), key=lambda one: -one.lineno)
        if isinstance(loop, ast.For)
        and loop not in loaders
        and script.training.runs_backward(loop)
        and made_of_rank(script, loop.iter)
    ]


def _through(script: Script, record: RankRecord, loop: ast.For) -> bool:
    """Whether a rank was no longer in a loop: it had ended without an error, or stood elsewhere."""
    frames = _frames(record)
    if not frames:
        return record.exit_code == 0 and not record.killed_by_judge
    return loop not in _loops(script, frames)
