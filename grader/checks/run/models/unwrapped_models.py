"""What is stepped beside wrapped models and that no wrapper averages: a model, a part of one, or a loss that learns.

Told by the optimizer that steps it, and by the parameters whose gradients differed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from grader.checks.phrases import at, count, first_known, listed
from grader.checks.run.models.changed_models import never_averaged
from grader.checks.source.causes import CauseInText, stands_at
from grader.checks.source.models.ignored_parameters import advice, ignoring
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Step, Wrap

_OWN_WRAPPER = (
    "Put what holds {it} into a wrapper of its own, or make it a part of the model before {wrap} wraps it."
)


def unwrapped_model(
    script: Script, rank: RankTrace, step: Step | None, names: Sequence[str]
) -> CauseInText | None:
    """What a step trained that lies in no wrapper although others do; None where it lies in one, or nobody knows.

    Args:
        script: the text.
        rank: one of the ranks.
        step: its first step with a gradient of its own; names: tensors whose gradients differed.
    """
    wraps = [w for w in rank.wraps if w.kind == "ddp"]
    ignored = _ignored(script, wraps, names)
    if ignored is not None:
        return ignored
    if step is None or step.wraps is None or not wraps or step.site is None:
        return None
    built = _optimizers_at(script, step.site)
    if step.wraps:
        return never_averaged(script, rank, names) or _outside(script, rank, wraps, built, names)
    if all(w.t > step.t for w in wraps) and any(w.module in step.modules for w in wraps):
        return _wrapped_late(script, wraps[0], step.site, built)
    model = listed([f"`{name}`" for name in step.modules], 2) or "what it steps"
    held = listed(dict.fromkeys(f"`{w.module}`" for w in wraps), 2)
    return CauseInText(
        built,
        f"It trains {model}, which is in no wrapper: {at(first_known([w.site for w in wraps]), 'DDP')} wraps {held}.",
        _wrap_too(script, built, [o for one in built for o in _owners(script, one)])
        or "Wrap that model, too, before its optimizer is built.",
    )


def _ignored(script: Script, wraps: Sequence[Wrap], names: Sequence[str]) -> CauseInText | None:
    """Parameters that DDP was told to leave alone."""
    wrap = next((w for w in wraps if names and set(names) <= set(w.ignored)), None)
    if wrap is None:
        return None
    told = ignoring(script)
    brought, hint = advice(script, told)
    by = f"{script.at(told[0])} told DDP" if told else f"{at(wrap.site, 'DDP')} was told"
    it = "its gradient" if len(wrap.ignored) == 1 else "their gradients"
    return CauseInText(
        (*told[:1], *brought),
        f"{by} to leave {count(len(wrap.ignored), 'parameter')} alone ({listed([f'`{n}`' for n in wrap.ignored], 3)}): "
        f"it never averages {it}.",
        hint,
    )


def _wrapped_late(script: Script, wrap: Wrap, site: Site, built: tuple[ast.Call, ...]) -> CauseInText:
    """Steps of a model that is wrapped afterwards."""
    wrapping = [w for w in script.training.wraps if stands_at(script, w, wrap.site)]
    line = at(wrap.site, "DDP")
    hint = "Wrap the model before its first step, and take all steps through the wrapper."
    if len(built) == 1 and len(wrapping) == 1 and start(built[0]) < start(wrapping[0]):
        tree = script.names.tree(built[0])
        if tree.function(built[0]) is script.names.tree(wrapping[0]).function(wrapping[0]):
            hint = (
                f"Move the wrapper from {line} above the first step, to where the optimizer is built at "
                f"{script.at(built[0])}, so that all steps go through it."
            )
    return CauseInText(
        (*wrapping, *built),
        f"{line} wraps the model only after that: {at(site)} has stepped by then with gradients that nothing averages.",
        hint,
    )


def _outside(
    script: Script, rank: RankTrace, wraps: Sequence[Wrap], built: tuple[ast.Call, ...], names: Sequence[str]
) -> CauseInText | None:
    """Parameters beside those of a wrapped model, in the same optimizer."""
    inside = {name for final in rank.finals for name in final.names}
    if not inside or inside.intersection(names) or script.replicas.some_ignored:
        return None
    held = {n for w in script.training.wraps for n in (w, *script.replicas.made_of(w))}
    owners = [o for one in built for o in _owners(script, one) if _is_other(script, o, held)]
    made = [o for owner in owners for o in script.values.origins(owner, returns=False)]
    wrap = at(first_known([w.site for w in wraps]), "DDP")
    several = listed([f"`{name}`" for name in names], 3)
    lies = f"{several} {'lies' if len(names) == 1 else 'lie'} outside of the model that {wrap} wraps"
    holder = f", in what {script.at(made[0])} makes" if made else ""
    written = _wrap_too(script, built, owners)
    it = "it" if len(names) == 1 else "them"
    return CauseInText(
        tuple(made[:1]),
        f"{lies}{holder}: DDP never averages {'its gradient' if it == 'it' else 'their gradients'}.",
        f"{written.removesuffix('.')}; or make it a part of that model before {wrap} wraps it."
        if written
        else _OWN_WRAPPER.format(it=it, wrap=wrap),
    )


def _is_other(script: Script, owner: ast.expr, held: set[ast.AST]) -> bool:
    made = script.values.origins(owner, returns=False)
    return bool(made) and all(script.replicas.builds_model(o) and o not in held for o in made)


def _wrap_too(script: Script, built: Sequence[ast.Call], owners: Sequence[ast.expr]) -> str:
    """What to write above an optimizer; "" where what it is given has no one name."""
    names = {o.id for o in owners if isinstance(o, ast.Name)}
    if len(names) != 1 or len(names) != len({ast.dump(o) for o in owners}):
        return ""
    (name,) = names
    return f"Wrap it, too, above {script.at(built[0])}: `{name} = DistributedDataParallel({name})`."


def _optimizers_at(script: Script, site: Site) -> tuple[ast.Call, ...]:
    stepped = [
        script.updates.stepped(s)
        for s in script.updates.steps
        if (where := script.location(s)).path == site.path
        and where.line <= site.line <= (where.end_line or where.line)
    ]
    origins = {o for one in stepped if one is not None for o in script.values.origins(one)}
    return tuple(o for o in script.updates.optimizers if o in origins)


def _owners(script: Script, optimizer: ast.Call) -> Iterable[ast.expr]:
    """Models whose parameters an optimizer is given: `net` of `net.parameters()`, also within a list or a chain."""
    given = script.argument(optimizer, "params") or (optimizer.args[0] if optimizer.args else None)
    for part in script.values.closure(given) if isinstance(given, ast.expr) else ():
        func = part.func if isinstance(part, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters"):
            yield func.value
