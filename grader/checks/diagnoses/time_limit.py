"""The run was stopped at its time limit.

## What happened
The limit came while the ranks were still training, or while they were somewhere else.

## Why
A run that makes progress is too slow or too long; one that does not has stopped somewhere that is no collective.

## Mend it
Fewer epochs, a loader that keeps up, all ranks sharing the data; or mend the line where the ranks stood.
"""

from __future__ import annotations

from grader.checks.phrases import count
from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.checks.source.causes import lines
from grader.checks.source.optimisation.stopping_rules import stopping_tests
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 90
_QUIET_SHARE = 0.2
_MOST_QUIET_S = 20.0
_ALONE = "Train fewer epochs, and look at where the time goes: waiting for data, evaluating too often, tiny batches."
_TOGETHER = (
    "Train fewer epochs, give each rank its share of the data instead of all of it, and look at where the time goes: "
    "waiting for data, evaluating too often, one rank working alone."
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of any time limit; whether there was progress decides what is said."""
    if run.ending is not Ending.TIMED_OUT or run.cause is not None:
        return None
    record = run.evidence.record
    steps = {r.rank: len(r.steps) for r in run.evidence.trace.ranks}
    last = max((r.steps[-1].t for r in run.evidence.trace.ranks if r.steps), default=None)
    epochs = max(
        (len(s.epochs) for s in run.evidence.ledger.training if all(e.own for e in s.epochs)), default=0
    )
    quiet_s = record.wall_s - last if last is not None else record.wall_s
    limit = f"the limit of {record.deadline_s:g} s"
    if last is not None and quiet_s <= max(1.0, min(_MOST_QUIET_S, _QUIET_SHARE * record.deadline_s)):
        per_s = max(steps.values()) / max(last, 1e-9)
        during = f", in {'its first epoch' if epochs == 1 else f'epoch {epochs - 1}'}" if epochs else ""
        alone = run.evidence.world_size == 1
        taken, script = count(max(steps.values()), "optimizer step"), run.evidence.script
        who, each = ("the script was", "") if alone else ("the ranks were", " each")
        goal = next(iter(stopping_tests(script)), None)
        why, hint = "so nothing hangs: the run is too long or too slow", _ALONE if alone else _TOGETHER
        if goal is not None:
            tested = f"{script.quote(goal)} ({script.at(goal)})"
            why = f"but {tested}, which training ends by, did not hold in {taken}"
            hint = (
                "Print after each epoch what that test compares. A loss that goes up and down and does not sink shows "
                "that nothing is learned: look at how batches are drawn, at the gradients and at the learning rate."
            )
        return run.parting(
            title="Training was still going on at the time limit",
            what=f"At {limit} {who} still training: {taken}{each} so far, {per_s:.2g} per second{during}",
            why=f"{'It' if alone else 'The ranks'} made progress until the end, {why}",
            hint=hint,
            where=lines(script, [goal]) if goal is not None else (),
            ranks=(),
            details={"steps": {str(r): n for r, n in steps.items()}},
        )
    since = (
        f"the last optimizer step was {quiet_s:.0f} s before" if last is not None else "no step had been made"
    )
    return run.parting(
        title="Nothing got on any more before the time limit",
        what=f"At {limit} {since}; {positions_text(run.positions)}",
        why=(
            "The ranks were not in a collective together, so this is no deadlock between them, but they did not train "
            "either"
        ),
        hint=(
            "Look at the lines where the ranks stood: an endless loop, a wait for a file or a process, or very slow "
            "work."
        ),
        where=(),
        ranks=(),
    )
