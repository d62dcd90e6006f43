"""A model that is trained beside wrapped ones and that no wrapper holds: told by the optimizer that steps it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.phrases import at, first_known, listed
from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Step


def unwrapped_model(script: Script, rank: RankTrace, step: Step | None) -> CauseInText | None:
    """What a step trained that lies in no wrapper although others do; None where it lies in one, or nobody knows."""
    wraps = [w for w in rank.wraps if w.kind == "ddp"]
    if step is None or step.wraps is None or step.wraps or not wraps or step.site is None:
        return None
    model = listed([f"`{name}`" for name in step.modules], 2) or "what it steps"
    held = listed(dict.fromkeys(f"`{w.module}`" for w in wraps), 2)
    built = _optimizers_at(script, step.site)
    names = sorted({name for one in built for name in _owners(script, one)})
    write = "Wrap that model, too, before its optimizer is built"
    if len(names) == 1:
        line = script.at(built[0])
        write = f"Wrap it, too, above {line}: `{names[0]} = DistributedDataParallel({names[0]})`"
    return CauseInText(
        built,
        f"It trains {model}, which is in no wrapper: {at(first_known([w.site for w in wraps]), 'DDP')} wraps {held}.",
        f"{write}.",
    )


def _optimizers_at(script: Script, site: Site) -> tuple[ast.Call, ...]:
    stepped = [
        script.updates.stepped(s)
        for s in script.updates.steps
        if (where := script.location(s)).path == site.path
        and where.line <= site.line <= (where.end_line or where.line)
    ]
    origins = {o for one in stepped if one is not None for o in script.values.origins(one)}
    return tuple(o for o in script.updates.optimizers if o in origins)


def _owners(script: Script, optimizer: ast.Call) -> Sequence[str]:
    given = script.argument(optimizer, "params") or (optimizer.args[0] if optimizer.args else None)
    func = given.func if isinstance(given, ast.Call) else None
    named = isinstance(func, ast.Attribute) and func.attr == "parameters" and isinstance(func.value, ast.Name)
    return [name_of(func.value)] if named and isinstance(func, ast.Attribute) else []
