"""Models that are trained beside wrapped ones and that no wrapper holds, as the text shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.gathered_inputs import alike_on_all_ranks
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start


def trained_outside(script: Script) -> Iterable[CauseInText]:
    """A model with an optimizer of its own that is trained, but that no wrapper holds."""
    if script.averaging.all:
        return
    held = {n for w in script.training.wraps for n in script.replicas.made_of(w)}
    for optimizer in script.updates.optimizers:
        given = optimizer.args[0] if optimizer.args else script.argument(optimizer, "params")
        func = given.func if isinstance(given, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "parameters":
            continue
        made = script.values.origins(func.value, returns=False)
        if not made or not all(script.replicas.builds_model(o) and o not in held for o in made):
            continue
        if any(script.replicas.on_some_ranks(n) or script.guards.alone(n) for n in (optimizer, *made)):
            continue
        for backward in script.training.backwards:
            called = [
                c
                for c in script.updates.forwards(backward)
                if isinstance(c.func, ast.Name | ast.Attribute)
                and not script.graph.targets(c)
                and not script.training.gradients_off(c)
                and set(script.values.origins(c.func, returns=False)) & set(made)
                and not alike_on_all_ranks(script, c)
            ]
            if called:
                # `forwards` is in no order of its own.
                first = min(called, key=start)
                yield CauseInText(
                    (first,),
                    f"{script.at(first)} trains the model made in {script.at(made[0])}, which is not the "
                    f"one that {script.at(script.training.wraps[0])} wraps. Nothing averages its gradients: each rank "
                    "trains one of its own.",
                    "Wrap every model that is trained, and call the wrapper.",
                )
                break
