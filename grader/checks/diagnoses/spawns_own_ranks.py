"""Every rank started ranks of its own.

## What happened
torchrun had started one process per rank; each of them called `mp.spawn` (or `Process`) and started more.

## Why
All these groups want the same port and the same devices. They clash, wait for each other, or each trains a run of its
own.

## Mend it
Call the training function directly and take rank and world size from torchrun's environment.
"""

from __future__ import annotations

from grader.checks.phrases import places, ranks
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_position import Fate
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending
from grader.model.trace import Event, RankTrace

ORDER = 15
_OWN = ("", "torch", "grader")
# Plain mistakes, which would end any script: the line inside the spawned function says more than the spawning.
_PLAIN = frozenset({
    "AssertionError", "AttributeError", "FileNotFoundError", "ImportError", "IndexError", "KeyError",
    "ModuleNotFoundError", "NameError", "SyntaxError", "TypeError", "UnboundLocalError", "ZeroDivisionError",
})  # fmt: skip
_WHY = (
    "torchrun has started one process per rank already, so every rank now brings a whole group of its own, and these "
    "groups want the same port and devices"
)
_HINT = (
    "Let torchrun start the ranks: call the training function once per process, with "
    '`int(os.environ["LOCAL_RANK"])` and `dist.init_process_group(backend)` without arguments.'
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where ranks that took no part in training themselves had started processes of their own."""
    if run.evidence.facts.launcher == "python":
        return None
    spawning = {r.rank: own for r in run.evidence.trace.ranks if (own := _own(r))}
    if not spawning:
        return None
    first = next(iter(spawning.values()))[0]
    lines = places(e[0].site for e in spawning.values())
    target = first.fields.get("target")
    named = isinstance(target, str) and target and not target.startswith("_")
    what = f"started `{target}` in further processes" if named else "started further processes"
    title = "Each rank started ranks of its own"
    if run.cause is not None:
        if run.cause.type in _PLAIN or run.cause.rank not in spawning:
            return None
        said = f", and one of them failed (“{run.words}”)" if run.words else ", and one of them failed"
        return run.crash(title=title, what=f"{what}{said},", why=_WHY, hint=_HINT, where=lines)
    waiting = [s for s in run.positions if s.rank in spawning and s.fate is Fate.WAITED]
    if run.ending not in (Ending.DEADLOCKED, Ending.TIMED_OUT) or not waiting:
        return None
    line = f" at `{lines[0].path}:{lines[0].line}`" if lines else ""
    return run.parting(
        title=title,
        what=f"{ranks(spawning)} {what}{line} and waited for them until the run was stopped",
        why=_WHY,
        hint=_HINT,
        where=lines,
        ranks=tuple(spawning),
    )


def _own(rank: RankTrace) -> list[Event]:
    if rank.steps or any(g.op == "init" for g in rank.groups):
        return []
    return [
        e
        for e in rank.events("process")
        if e.fields.get("op") in ("spawn", "fork") and e.fields.get("by", "") in _OWN
    ]
