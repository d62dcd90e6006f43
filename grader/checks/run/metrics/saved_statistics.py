"""What the file that was scored holds: statistics of another network than was validated, or just the last weights."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.evidence import Evidence
from grader.checks.run.metrics.evaluation_passes import during_validation
from grader.checks.source.causes import CauseInText, weight_saves
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.checkpoint_save import Save

_SAVED_ELSE = (
    "Save what was validated: the state dict of the same network, taken right after its validation pass and copied "
    "(`copy.deepcopy(model.state_dict())`), its buffers among it."
)


def other_statistics(evidence: Evidence) -> CauseInText | None:
    """What is wrong with the saved statistics; None where a validation pass in training mode may be what happened."""
    looked = [e for r in evidence.trace.ranks for e in during_validation(evidence, r)]
    if not looked or any(e.fields.get("training_mode") is not False for e in looked):
        return None
    script, scored = evidence.script, evidence.evaluation
    nodes = tuple(_made_without_buffers(script))
    if scored is None or not any(save.untracked for save in _scored_saves(evidence)):
        return CauseInText(
            (), "The script did validate in evaluation mode, with other statistics.", _SAVED_ELSE
        )
    by = f" by {script.at(nodes[0])}" if nodes else ""
    return CauseInText(
        nodes,
        f"The BatchNorm statistics in `{scored.artifact}` are those of a new network (`num_batches_tracked` is 0): its "
        f"parameters were made of the trained ones{by}, and its buffers were not.",
        "Copy the buffers of the trained network as well, "
        f"{_copying(nodes)}; an `AveragedModel` does so with `use_buffers=True`.",
    )


def last_was_saved(evidence: Evidence) -> bool:
    """Whether what was scored is the trained model as it was when it was written."""
    return any(save.live for save in _scored_saves(evidence))


def _scored_saves(evidence: Evidence) -> list[Save]:
    sums = evidence.evaluation.sums if evidence.evaluation is not None else ()
    return [s for r in evidence.trace.ranks for s in r.saves if sums and s.sums == sums]


def _made_without_buffers(script: Script) -> Iterable[ast.Call]:
    """Where the saved network's parameters are walked over, beside those of another, or an average of them is built."""
    owners = [
        taken.func.value
        for save in weight_saves(script)
        if isinstance(save, ast.Call)
        for given in save.args[:1]
        for taken in script.values.closure(given)
        if isinstance(taken, ast.Call)
        and isinstance(taken.func, ast.Attribute)
        and taken.func.attr == "state_dict"
    ]
    made = {o for owner in owners for o in script.values.origins(owner, returns=False)}
    yield from (o for o in made if isinstance(o, ast.Call) and name_of(o) == "AveragedModel")
    for pair in script.called("zip"):
        walked = [a for a in pair.args if isinstance(a, ast.Call) and name_of(a) == "parameters"]
        held = [a.func.value for a in walked if isinstance(a.func, ast.Attribute)]
        if len(held) > 1 and any(made & set(script.values.origins(h, returns=False)) for h in held):
            yield pair


def _copying(nodes: tuple[ast.AST, ...]) -> str:
    pair = next((n for n in nodes if isinstance(n, ast.Call) and name_of(n) == "zip"), None)
    if pair is None:
        return "`for a, b in zip(averaged.buffers(), model.buffers()): a.copy_(b)`"
    buffers = ", ".join(ast.unparse(a).replace(".parameters()", ".buffers()") for a in pair.args)
    return f"`for a, b in zip({buffers}): a.copy_(b)`"
