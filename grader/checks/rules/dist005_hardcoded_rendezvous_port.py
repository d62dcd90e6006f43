"""The meeting point of the ranks is written into the script.

## What it finds
A literal `MASTER_PORT` or `MASTER_ADDR` put into the environment over what the launcher has set, and
`init_method="tcp://host:port"` with a literal address.

## Why it matters
The launcher chooses a free port and keeps a store there. A script that names another one waits for a store that
nobody keeps, two jobs on one machine meet each other's ranks or stop with "address already in use", and `localhost`
ends at the edge of the machine.

## Example
```python
import os
import torch.distributed as dist

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
dist.init_process_group("gloo")
```

## Use instead
```python
import os
import torch.distributed as dist

os.environ.setdefault("MASTER_ADDR", "localhost")  # without a launcher only
os.environ.setdefault("MASTER_PORT", "12355")
dist.init_process_group("gloo")
```

## How it is seen
In the source, as advice; not of a script that starts its ranks itself, while no task says that a launcher will, and
never where the task's launcher is `python`: there the script has to say where its ranks meet. In the run it is an error
when the ranks never met, or when the port was taken, and the text names one.
Reference: "Environment variable initialization",
https://pytorch.org/docs/stable/distributed.html#environment-variable-initialization.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.needed_lines import START_GROUP
from grader.checks.phrases import places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.ranks.literal_ranks import environment_writes, falls_back
from grader.checks.source.ranks.own_ranks import needs_no_launcher
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
_ADDRESS = re.compile(r"^tcp://[^:{}]+:[1-9]\d*$")
_OWN_ADDRESSES = ("localhost", "127.0.0.1", "0.0.0.0", "::1")
_TAKEN = re.compile(r"[Aa]ddress already in use|EADDRINUSE|failed to bind|errno: 98")
_LATE = re.compile(r"socket has timed out|failed to connect|timed out after")
_HINT = (
    f"Leave the meeting point to the launcher: drop these lines and call `{START_GROUP}`. For a "
    'start without a launcher, `os.environ.setdefault("MASTER_PORT", …)` keeps what torchrun has set.'
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag literal addresses and ports that override the launcher's."""
    if not script.joins_group or needs_no_launcher(script):
        return
    found = _written(script)
    if not found:
        return
    first = found[0]
    yield Hit(
        message=f"{script.at(first)} has {script.quote(first)}: the ranks' meeting point is fixed in the text. Under "
        "torchrun this overrides where the launcher keeps its store: the ranks wait where nobody is, and two jobs on "
        "one machine clash over the port.",
        hint=_HINT,
        where=tuple(dict.fromkeys(script.location(n) for n in found)),
        fix=_fix(script, found),
    )


def _fix(script: Script, found: list[ast.AST]) -> Fix | None:
    """Addresses that count only where the launcher has set none."""
    edits = Edits(script)
    for node in found:
        statement = script.names.tree(node).statement(node)
        pairs = list(_settings(script, edits, node))
        if not pairs or not isinstance(statement, ast.Assign | ast.Expr):
            return None
        setdefault = edits.name("os.environ.setdefault", node)
        edits.rewrite(statement, *(f"{setdefault}({key}, {value})" for key, value in pairs))
    return edits.fix("Keeps the meeting point that the launcher has set.")


def _settings(script: Script, edits: Edits, node: ast.AST) -> Iterable[tuple[str, str]]:
    """Names and values of the variables that a line sets, as they are written."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        yield edits.text(node.targets[0].slice), edits.text(node.value)
    elif isinstance(node, ast.Call) and script.names.qualified(node.func) == "os.environ.update":
        display = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(display, ast.Dict):
            yield from (
                (edits.text(k), edits.text(v)) for k, v in zip(display.keys, display.values, strict=True) if k
            )


def _written(script: Script) -> list[ast.AST]:
    found: list[ast.AST] = []
    for target, variable in environment_writes(script):
        fixed = variable in ("MASTER_PORT", "MASTER_ADDR") and _is_literal(script, target.value)
        if fixed and not falls_back(script, target):
            found.append(target)
    for name, call in script.calls_under("os.environ."):
        if name == "os.environ.update" and call.args and not falls_back(script, call):
            keys = [k.value for a in call.args if isinstance(a, ast.Dict) for k, v in zip(a.keys, a.values, strict=True)
                    if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)]  # fmt: skip
            found += [call] if {"MASTER_PORT", "MASTER_ADDR"} & set(keys) else []
    for call in script.calls(INIT):
        given = script.given(call, "init_method")
        address = script.values.constant(given) if given is not None else None
        if isinstance(address, str) and _ADDRESS.match(address) and not falls_back(script, call):
            found.append(call)
    kept = [n for n in found if not script.guards.alone(n)]
    # This machine's own address without a port is a default that most scripts for one machine have.
    telling = [n for n in kept if not _is_own_address(script, n)]
    return sorted(kept, key=lambda n: (script.location(n).path, start(n))) if telling else []


def _is_own_address(script: Script, node: ast.AST) -> bool:
    named = isinstance(node, ast.Assign) and _names(script, node, "MASTER_ADDR")
    return named and isinstance(node, ast.Assign) and script.values.constant(node.value) in _OWN_ADDRESSES


def _is_literal(script: Script, value: ast.expr) -> bool:
    """A text or number, also as `str(29500)`, or several of them."""
    if isinstance(value, ast.Tuple):
        return all(_is_literal(script, one) for one in value.elts)
    if isinstance(value, ast.Call) and script.names.qualified(value.func) == "str" and value.args:
        value = value.args[0]
    return isinstance(script.values.constant(value), str | int)


def _names(script: Script, target: ast.Assign, variable: str) -> bool:
    return any(script.ranks.environment(t) == variable for t in target.targets)


def check_run(evidence: Evidence) -> Observation:
    """Flag runs in which the ranks never met, or found the port taken, where the text fixes the meeting point."""
    from grader.model.run import Ending

    written = _written(evidence.script)
    joined = [r.rank for r in evidence.trace.ranks if any(g.op == "init" for g in r.groups)]
    if len(joined) == evidence.trace.world_size:
        if written:
            return not_observable("The ranks met this time; another job on the same machine would show it.")
        return verified("All ranks met where the launcher told them to.")
    taken = [r for r in evidence.record.ranks if r.failure is not None and _TAKEN.search(r.failure.message)]
    waiting = [
        r
        for r in evidence.record.ranks
        if r.waiting is not None and r.waiting.operation.startswith("rendezvous")
    ]
    late = [r for r in evidence.record.ranks if r.failure is not None and _LATE.search(r.failure.message)]
    stopped = evidence.record.ending in (Ending.DEADLOCKED, Ending.TIMED_OUT, Ending.CRASHED)
    if not written or not stopped or not (taken or waiting or late):
        return not_observable(
            "The run ended before the ranks could meet." if not joined else "Not all ranks met."
        )
    who = taken or waiting or late
    first = written[0]
    what = "found the port taken" if taken else "never met the others"
    why = (
        "another process holds it"
        if taken
        else "nobody keeps a store there, since the launcher's is elsewhere"
    )
    sites = [r.waiting.site for r in waiting if r.waiting is not None]
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r in who)} {what}: {evidence.script.at(first)} fixes the meeting point, "
            f"{evidence.script.quote(first)}, and {why}.",
            hint=_HINT,
            where=(*(evidence.script.location(n) for n in written), *places(sites)),
            ranks=tuple(r.rank for r in who),
            details={
                "messages": {str(r.rank): r.failure.message[:400] for r in who if r.failure is not None}
            },
            severity=Severity.ERROR,
            evidence=EvidenceKind.OUTSIDE,
        )
    )
