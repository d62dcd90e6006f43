"""How long a script lets ranks wait for each other: the time limits that it gives to groups and barriers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.script import UNKNOWN, Script

_GIVEN = (
    "torch.distributed.init_process_group", "torch.distributed.new_group", "torch.distributed.monitored_barrier",
    "torch.distributed.device_mesh.init_device_mesh", "accelerate.InitProcessGroupKwargs",
    "accelerate.utils.InitProcessGroupKwargs",
)  # fmt: skip
_POSITIONS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_SECONDS = dict(zip(_POSITIONS, (86_400.0, 1.0, 1e-6, 1e-3, 60.0, 3_600.0, 604_800.0), strict=True))


@dataclass(frozen=True, slots=True)
class GroupTimeout:
    """One of them: the expression that says it, and its length in seconds."""

    node: ast.AST
    length_s: float


def group_timeouts(script: Script) -> Iterator[GroupTimeout]:
    """All that are written out as a `timedelta`, the shortest first."""
    given = [k.value for c in script.calls(*_GIVEN) for k in c.keywords if k.arg == "timeout"]
    found = [GroupTimeout(o, s) for g in given for o in script.values.origins(g) if (s := _length(script, o))]
    yield from sorted(found, key=lambda one: one.length_s)


def _length(script: Script, made: ast.AST) -> float:
    """Seconds of `timedelta(minutes=2)`, 0 where it is not plain."""
    if not isinstance(made, ast.Call) or script.names.qualified(made.func) != "datetime.timedelta":
        return 0.0
    parts = [*zip(_POSITIONS, made.args, strict=False), *((k.arg or "", k.value) for k in made.keywords)]
    total = 0.0
    for name, value in parts:
        number = script.values.constant(value)
        if number is UNKNOWN or not isinstance(number, int | float) or name not in _SECONDS:
            return 0.0
        total += number * _SECONDS[name]
    return total
