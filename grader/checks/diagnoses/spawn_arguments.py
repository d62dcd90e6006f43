"""`mp.spawn` was given arguments that do not fit the function.

## What happened
The spawned function was called with too many, too few, or no proper arguments.

## Why
`mp.spawn(fn, args=(a, b))` calls `fn(index, a, b)`: the process's number comes first, and `args` must be a tuple;
`(x)` is just `x`, a tuple of one is `(x,)`.

## Mend it
Under torchrun there is nothing to spawn: call the function once per process.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 10
_TUPLE = re.compile(r"(?:Value|argument) after \* must be an iterable, not (?P<type>\w+)")
_NUMBER = re.compile(
    r"\w\(\) (takes \d+ positional arguments? but \d+ were given|missing \d+ required positional)"
)
_CALLS = {
    "torch.multiprocessing.spawn", "torch.multiprocessing.start_processes",
    "torch.multiprocessing.spawn.spawn", "torch.multiprocessing.spawn.start_processes",
}  # fmt: skip


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of errors in the call of the spawned function itself: no line of it had run yet."""
    calls = run.evidence.script.calls(*_CALLS)
    told = run.cause is not None and run.cause.type == "TypeError"
    if not calls or not told or run.cause is None:
        return None
    where: tuple[Location, ...] = tuple(run.evidence.script.location(c) for c in calls[:1])
    if any(f.in_submission for f in run.cause.frames) and run.cause.where[0].line != where[0].line:
        return None
    single = run.saying(_TUPLE)
    if single is not None:
        what = f"gave `mp.spawn` one value ({single['type']}) as `args` where it takes a tuple,"
        why = "`args=(x)` is only `x` in brackets, and its parts are passed to the function one by one"
        hint = "A tuple of one has a comma: `args=(world_size,)`. "
    elif run.saying(_NUMBER) is not None:
        what = f"called the spawned function with the wrong number of arguments (“{run.words}”)"
        why = "`mp.spawn(fn, args=(a, b))` calls `fn(index, a, b)`: the number of the process always comes first"
        hint = "Let the function take the number first, `def worker(rank, world_size):`. "
    else:
        return None
    return run.crash(
        title="`mp.spawn` got arguments that do not fit",
        what=what,
        why=why,
        hint=f"{hint}Under torchrun no spawning is needed at all: call the function once per process.",
        where=where,
    )
