"""Some ranks waited in `init_process_group` for ranks that never came there.

## What happened
At least one rank had called `init_process_group` and waited; another one was somewhere else.

## Why
A group comes into being only when all ranks have joined it.

## Mend it
Call `dist.init_process_group(backend)` first thing on every rank, outside every test of the rank.
"""

from __future__ import annotations

import ast

from grader.checks.phrases import listed, ranks
from grader.checks.run.endings.failed_run import FailedRun, named, positions_text
from grader.checks.run.endings.rank_position import RankPosition
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.files.rank_paths import of_each_process
from grader.checks.source.syntax.node_text import node_text
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location
from grader.model.run import Ending

ORDER = 28
_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
_LAUNCHED = (
    "Call `dist.init_process_group(backend)` at the start of every rank, under no test of the rank, and let torchrun's "
    "environment give the address, `rank` and `world_size`."
)
_OWN_RANKS = (
    "Start as many processes as `world_size` says, `mp.spawn(worker, args=(world_size,), nprocs=world_size)`, and let "
    "each call `dist.init_process_group(backend, rank=rank, world_size=world_size)` under its own number."
)
_JOINING = "rendezvous (init_process_group)"


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a standstill or a time limit in which only some ranks had come to the meeting."""
    if run.cause is not None or run.ending not in (Ending.DEADLOCKED, Ending.TIMED_OUT):
        return None
    joining = [s for s in run.positions if s.operation == _JOINING]
    rest = [s for s in run.positions if s.operation != _JOINING]
    if not joining:
        return None
    if not rest:
        return _elsewhere(run, joining)
    return run.parting(
        title="The process group never came together",
        what=f"{ranks(s.rank for s in joining)} waited in `init_process_group`{named(joining[0].where)}; "
        f"{positions_text(rest)}",
        why="A process group exists only once every rank has joined it, at the same address and under its own number",
        hint=_OWN_RANKS if run.evidence.facts.launcher == "python" else _LAUNCHED,
        where=joining[0].where,
        ranks=tuple(s.rank for s in rest),
    )


def _elsewhere(run: FailedRun, joining: list[RankPosition]) -> Diagnosis:
    """All ranks are at the meeting, and it does not begin: they look for each other in the wrong place."""
    alone = run.evidence.facts.launcher == "python"
    if (file := _own_file(run)) is not None:
        return _in_own_files(run, joining, file)
    own = {} if alone else _own_settings(run)
    settings = listed(f"{name} (`{place.path}:{place.line}`)" for name, place in own.items())
    setting = f", with the script's own {settings}" if own else ""
    return run.parting(
        title="All ranks looked for each other in the wrong place",
        what=f"{ranks(s.rank for s in joining)} waited in `init_process_group`{named(joining[0].where)}{setting}, and "
        "the group never came together",
        why=(
            f"Ranks find each other at {'one address' if alone else 'the address that torchrun gives them'}, each "
            "under its own number, so another port, a fixed `rank` or a wrong `world_size` leaves them waiting for "
            "somebody who never comes"
        ),
        hint=(
            _OWN_RANKS
            if alone
            else "Drop what the script sets itself and write `dist.init_process_group(backend)`: `MASTER_ADDR`, "
            "`MASTER_PORT`, `RANK` and `WORLD_SIZE` are in the environment already."
        ),
        where=tuple(dict.fromkeys((*own.values(), *joining[0].where))),
        ranks=tuple(s.rank for s in joining),
        details={"own_settings": list(own)},
    )


def _own_file(run: FailedRun) -> ast.expr | None:
    """A file to meet in that is another one in each process."""
    script = run.evidence.script
    for call in script.calls(INIT):
        value = script.given(call, "init_method")
        if value is None:
            continue
        texts = (n.value for n in script.values.closure(value) if isinstance(n, ast.Constant))
        if any(isinstance(t, str) and t.startswith("file:") for t in texts) and of_each_process(
            script, value
        ):
            return value
    return None


def _in_own_files(run: FailedRun, joining: list[RankPosition], file: ast.expr) -> Diagnosis:
    script = run.evidence.script
    alone = run.evidence.facts.launcher == "python"
    return run.parting(
        title="Each rank waited in a file of its own",
        what=f"{ranks(s.rank for s in joining)} waited in `init_process_group`{named(joining[0].where)}, with "
        f"`init_method={node_text(script, file)}`, and the group never came together",
        why="Ranks that meet through a file must all name the same one, and what this one's path is made of is another "
        "in each process, such as a new temporary folder or the rank",
        hint="Name one path for all ranks, made before they are started, and a new one for each run."
        if alone
        else "Leave `init_method` out: `dist.init_process_group(backend)` meets at the address that torchrun gives.",
        where=tuple(dict.fromkeys((script.location(file), *joining[0].where))),
        ranks=tuple(s.rank for s in joining),
    )


def _own_settings(run: FailedRun) -> dict[str, Location]:
    """What the script sets although the launcher does: variables, and arguments of `init_process_group`."""
    script = run.evidence.script
    found: dict[str, Location] = {}
    for tree in script.trees:
        for node in ast.walk(tree.root):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.Constant) and key.value in _VARIABLES:
                    found.setdefault(f"`{key.value}`", script.location(node))
    for call in script.calls(INIT):
        for name in ("init_method", "rank", "world_size"):
            value = script.argument(call, name)
            if isinstance(value, ast.Constant) and value.value not in (None, "env://", -1):
                found.setdefault(f"`{name}`", script.location(value))
    return found
