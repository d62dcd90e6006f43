"""Calls of `train()` that were to bring a network back to training and don't: before or after the rounds, in a branch.

Asked only where a run has trained in evaluation mode; it says where and what to move, and decides nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.ways import ways_to
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, Loop, ancestors, end, start


@dataclass(frozen=True, slots=True)
class UnmetTrainingMode:
    """A call of `train()`: when it runs, as a sentence, and where it is to stand."""

    call: ast.Call
    says: str
    hint: str


def unmet_training_mode(script: Script) -> UnmetTrainingMode | None:
    """The first such call; None where each one stands in the rounds of training, or nobody calls it."""
    loops = [loop for draw in script.training.draws if draw.trains for loop in _rounds(script, draw.loop)]
    for call in script.called("train"):
        given = arguments_of(call)
        on = not given or script.values.constant(given[0]) is not False
        network = call.func.value if isinstance(call.func, ast.Attribute) else None
        if network is None or not on or not loops or script.graph.targets(call):
            continue
        tree = script.names.tree(call)
        inside = [loop for loop in loops if script.updates.entries(loop, [call])]
        rounds = inside[-1] if inside else loops[-1]
        to = f"Put `{ast.unparse(call)}` at the start of each round of the loop at {script.at(rounds)}."
        quoted = f"{script.quote(call)} at {script.at(call)}"
        if not inside:
            same = tree is script.names.tree(rounds) and tree.function(call) is tree.function(rounds)
            when = ""
            if same:
                when = (
                    "before" if start(call) < start(rounds) else "after" if start(call) > end(rounds) else ""
                )
            return UnmetTrainingMode(call, f"{quoted} runs {when or 'outside of'} the rounds only.", to)
        branch = next(
            (
                a
                for a in ancestors(tree.parent, call, tree.function(call))
                if isinstance(a, ast.If | ast.IfExp)
            ),
            None,
        )
        if branch is not None and tree.inside(branch, rounds):
            return UnmetTrainingMode(
                call, f"{quoted} runs only where `{ast.unparse(branch.test)}` decides so.", to
            )
    return None


def _rounds(script: Script, loop: Loop) -> list[Loop]:
    """The loop over batches, and those around it or around calls that lead to it, the innermost first."""
    found = [loop]
    for place in (loop, *ways_to(script.names, script.graph, loop)):
        tree = script.names.tree(place)
        found += [a for a in ancestors(tree.parent, place) if isinstance(a, LOOPS)]
    return list(dict.fromkeys(found))
