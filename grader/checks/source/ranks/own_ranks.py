"""Ranks that a script starts by itself, with `mp.spawn` or `Process`, instead of leaving that to a launcher."""

from __future__ import annotations

import ast

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script

START_ALL = (
    "Start as many ranks as the arguments say: `nprocs=args.num_gpus`, and `world_size=args.num_gpus`."
)
"""What to write where a script started fewer."""
_OF_THE_LAUNCHER = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "TORCHELASTIC_RUN_ID",
)


def starts_of_ranks(script: Script) -> list[ast.Call]:
    """Calls that start a function which joins a group, unless only a run without a launcher gets there."""
    starts = script.calls(INIT)
    sites = script.graph.spawn_sites if starts else []
    return [s.call for s in sites if not script.guards.alone(s.call) and _joins(script, s.call, starts)]


def needs_no_launcher(script: Script) -> bool:
    """Whether a script is for `python train.py`: its task says so, or nobody does and it is plainly so written."""
    if script.launched is None:
        return bool(starts_of_ranks(script)) and not _reads_launcher(script)
    return not script.launched


def _reads_launcher(script: Script) -> bool:
    for tree in script.trees:
        if not tree.constants.isdisjoint(_OF_THE_LAUNCHER):
            for node in ast.walk(tree.root):
                stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
                read = isinstance(node, ast.Subscript | ast.Call) and not stored
                if read and script.ranks.environment(node) in _OF_THE_LAUNCHER:
                    return True
    return False


def _joins(script: Script, spawn: ast.Call, starts: list[ast.Call]) -> bool:
    """Whether a function started here runs one of the group's starts, directly or through others."""
    for start in starts:
        work = [script.names.tree(start).function(start)]
        seen: set[ast.AST] = set()
        while work:
            function = work.pop()
            if function is None or function in seen:
                continue
            seen.add(function)
            for site in script.graph.sites(function):
                if site.spawned and site.call is spawn:
                    return True
                if not site.spawned:
                    work.append(script.names.tree(site.call).function(site.call))
    return False
