"""Parameters that were trained by the loss but stepped by nobody, told as a finding."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from grader.checks.phrases import count, listed, told_once
from grader.checks.rule import Hit
from grader.checks.run.gradients.discarded_tensors import discarded
from grader.checks.source.causes import lines
from grader.checks.source.models.changing_models import made_later
from grader.checks.source.models.name_tests import PrefixedTest, missed_prefix
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event


_GIVE_ALL = (
    "Give the optimizer all parameters; those without weight decay are a second group beside the first: "
    '`{"params": others, "weight_decay": 0.0}`. What is to stay as it is needs no gradients: '
    "`requires_grad_(False)` before the model is wrapped."
)
_LAST = "after the last change of the model's layers"


def left_out(evidence: Evidence, unheld: Event) -> Hit:
    """Parameters with gradients that no optimizer was given, and that stayed as they were."""
    script, names = evidence.script, unheld.fields["names"]
    wrap = next((w for r in evidence.trace.ranks for w in r.wraps if w.id == unheld.fields["wrap"]), None)
    of = f" of the {count(wrap.num_tensors, 'parameter')} of `{wrap.module}`" if wrap is not None else ""
    have = "gets gradients and is" if len(names) == 1 else "get gradients and are"
    asked = {str(n).rpartition(".")[0] for n in names}
    others = {n for r in evidence.trace.ranks for f in r.finals for n in f.names} - set(names)
    whole = not asked & {n.rpartition(".")[0] for n in others}
    meant = whole and any(r.events("load") for r in evidence.trace.ranks)
    built = script.updates.optimizers
    given = [o for one in built for o in _given(script, one)]
    later = made_later(script, names, script.updates.optimizers)
    gone = {name for r in evidence.trace.ranks for name in discarded(r)}
    hint = _GIVE_ALL
    if later or gone:
        below = f"below {script.quote(later[-1])} ({script.at(later[-1])})" if later else _LAST
        hint = f"Build the optimizer {below}: it holds the tensors that the model had when it was built, and no others."
    missed = None if later or gone else missed_prefix(script, names)
    if missed is not None:
        hint = (
            f"Ask for the names that the wrapper gives, `{missed.written}` at {script.at(missed.test)}; or build the "
            "groups from the network before it is wrapped."
        )
    return Hit(
        message=f"{len(names):,}{of} {have} in no group of an optimizer: {listed([f'`{n}`' for n in names], 4)}. "
        f"No step moves {'it' if len(names) == 1 else 'them'}: at the end of the run "
        f"{'it was' if len(names) == 1 else 'all were'} what training began with."
        + _never_true(script, missed)
        + (" The optimizer holds tensors in their place that no layer has any more." if gone else ""),
        hint=hint,
        where=told_once(
            lines(script, [*([missed.test] if missed is not None else ()), *given, *built, *later])
        ),
        severity=Severity.HINT if meant else Severity.WARNING,
        details={"names": list(names[:8]), "parameters": len(names)},
    )


def _never_true(script: Script, missed: PrefixedTest | None) -> str:
    if missed is None:
        return ""
    return (
        f" {script.quote(missed.test)} at {script.at(missed.test)} holds for none of them: the names of "
        f"{script.quote(missed.named)} begin with `module.`, where the wrapper keeps the network."
    )


def _given(script: Script, optimizer: ast.Call) -> list[ast.AST]:
    """Where what an optimizer is given was put together by choice."""
    given = script.argument(optimizer, "params") or (optimizer.args[0] if optimizer.args else None)
    if given is None:
        return []
    made = script.values.closure(given)
    chosen = (n for n in made if isinstance(n, ast.ListComp) and any(g.ifs for g in n.generators))
    return sorted(chosen, key=start)
