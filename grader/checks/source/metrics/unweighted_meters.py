"""Meters that are told the mean of a batch without its size, beside others in the same loop that are told both.

A meter that weighs by a count that is 1 unless given makes a mean of batch means: the short last batch weighs as much
as a full one. Silent where no other call of the loop gives the count: then all batches may be meant to weigh alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.collectives.reduction_results import is_mean
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of, walk
from grader.checks.source.training_loops import Draw

_READ = ("item", "detach")


@dataclass(frozen=True, slots=True)
class UnweightedMeter:
    """A call that lacks the count; `beside`: one that gives it. `says` follows a place, such as `train.py:7`."""

    call: ast.Call
    beside: ast.Call
    says: str
    hint: str


def unweighted_meters(script: Script) -> Iterable[UnweightedMeter]:
    """All of them in loops that evaluate; each meter once."""
    for draw in script.training.draws:
        if draw.evaluates and not draw.trains:
            yield from _in_loop(script, draw)


def _in_loop(script: Script, draw: Draw) -> Iterable[UnweightedMeter]:
    calls = script.names.tree(draw.loop).calls_within(draw.loop)
    told = [(call, count) for call in calls for count in _counts(script, call)]
    for call, (parameter, given) in told:
        beside = next((c for c, (_, other) in told if other is not None), None)
        if given is None and beside is not None and _of_batch(script, call):
            size = next(other for c, (_, other) in told if c is beside and other is not None)
            value = node_text(script, call.args[0])
            owner = node_text(script, call.func)
            yield UnweightedMeter(
                call,
                beside,
                f"hands a batch's mean to {script.quote(call.func)} without the number of its samples, `{parameter}`, "
                f"which {script.at(beside)} gives. The result is a mean of batch means: the last batch, where it is "
                "shorter, weighs as much as a full one.",
                f"Write `{owner}({value}, {node_text(script, size)})`.",
            )


def _counts(script: Script, call: ast.Call) -> Iterable[tuple[str, ast.expr | None]]:
    """For a call of a meter's method, its parameter for the number of samples, and what is given for it."""
    for target in script.graph.targets(call):
        if not isinstance(target, FUNCTIONS) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        names = [a.arg for a in target.args.args]
        if len(names) != 3 or len(target.args.defaults) != 1:
            continue
        default = target.args.defaults[0]
        weighs = any(
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and {ast.unparse(n.left), ast.unparse(n.right)} == set(names[1:])
            for s in target.body
            for n in walk(s)
        )
        if weighs and isinstance(default, ast.Constant) and default.value == 1:
            given = call.args[1] if len(call.args) > 1 else None
            yield names[2], given or next((k.value for k in call.keywords if k.arg == names[2]), None)


def _of_batch(script: Script, call: ast.Call) -> bool:
    """Whether what a meter is told is the mean of a batch."""
    value = call.args[0]
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and name_of(value) in _READ:
        value = value.func.value
    return any(is_mean(script, origin) for origin in (value, *script.values.origins(value)))
