"""The checkpoint's names begin with `module.`.

## What it finds
A `state_dict()` taken from the `DistributedDataParallel` wrapper and saved as it is.

## Why it matters
The wrapper keeps the network in its attribute `module`, so each name gets that prefix. A plain network, which is
what everybody else loads the weights into, does not know such names: `load_state_dict` fails, or, with
`strict=False`, silently loads nothing.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## How it is seen
In the source: the saved value is followed to the module whose `state_dict` it is, a wrapper or what
`accelerator.prepare` gave back. In the evaluation: the names in
the file. The judge strips the prefix and says so. Reference:
`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.libraries.framework_words import ACCELERATE
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
_SAVES = {
    "torch.save": "obj",
    "safetensors.torch.save_file": "tensors",
    "safetensors.torch.save_model": "model",
}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag saved state dicts of the wrapper, unless the script strips the prefix somewhere."""
    yield from _letters_stripped(script)
    if script.frameworks.words is ACCELERATE and not _strips_prefix(script):
        yield from _of_accelerate(script)
    if not script.training.wraps or script.training.framework or _strips_prefix(script):
        return
    found = list(
        dict.fromkeys(
            d for name, arg in _SAVES.items() for c in script.calls(name) for d in _taken(script, c, arg)
        )
    )
    found.sort(key=lambda d: (script.location(d).path, start(d)))
    if found:
        first = found[0]
        yield Hit(
            message=f"{script.at(first)} saves {script.quote(first)} of the DistributedDataParallel wrapper: "
            "every name in the file begins with `module.`, and the plain network does not load it.",
            hint="Save what is inside the wrapper: `model.module.state_dict()`.",
            where=tuple(script.location(d) for d in found),
            fix=_fix(script, found),
        )


def _letters_stripped(script: Script) -> Iterable[Hit]:
    """`name.strip("module.")`, which takes away letters, not a word."""
    for call in script.called("strip", "lstrip", "rstrip"):
        given = script.values.constant(call.args[0]) if call.args else None
        if isinstance(call.func, ast.Attribute) and given in ("module.", "_orig_mod.", "module"):
            edits = Edits(script)
            owner = edits.text(call.func.value)
            edits.replace(call, f"{owner}.removeprefix({edits.text(call.args[0])})")
            yield Hit(
                message=f"{script.at(call)} takes single letters off the names, {script.quote(call)}: all of "
                f"“{given}” that stand at their ends, in any order. Names such as `model.weight` or "
                "`bn1.num_batches_tracked` come out as others, and the network does not load them.",
                hint=f"Take the whole word away: `{owner}.removeprefix({edits.text(call.args[0])})`, or save "
                "`model.module.state_dict()`, which has plain names.",
                where=(script.location(call),),
                severity=Severity.WARNING,
                fix=edits.fix("Takes the prefix away, and nothing else."),
            )


def _of_accelerate(script: Script) -> Iterable[Hit]:
    """State dicts of what `accelerator.prepare` gave back, saved without `unwrap_model`."""
    for save in (
        *script.calls("torch.save", "safetensors.torch.save_file"),
        *script.frameworks.calls("save"),
    ):
        given = save.args[0] if save.args else None
        for taken in script.values.closure(given) if given is not None else ():
            func = taken.func if isinstance(taken, ast.Call) else None
            if (
                not isinstance(func, ast.Attribute)
                or func.attr != "state_dict"
                or not script.networks.is_network(func.value)
                or script.frameworks.holds_model(func.value) is None
            ):
                continue
            yield Hit(
                message=f"{script.at(taken)} saves {script.quote(taken)} of what `accelerator.prepare` gave back. With "
                "several processes that is the DistributedDataParallel wrapper: every name in the file begins with "
                "`module.`, and the plain network does not load it.",
                hint="Save what is inside: `accelerator.unwrap_model(model).state_dict()`.",
                where=(script.location(taken),),
            )
            return


def _fix(script: Script, found: list[ast.AST]) -> Fix | None:
    edits = Edits(script)
    loads = [c.func.value for c in script.called("load_state_dict") if isinstance(c.func, ast.Attribute)]
    if any(script.training.wrapped(owner) for owner in loads):
        return None  # what the wrapper reads again has the wrapper's names
    for taken in found:
        func = taken.func if isinstance(taken, ast.Call) else None
        owner = func.value if isinstance(func, ast.Attribute) and func.attr == "state_dict" else None
        origins = script.values.origins(owner) if owner is not None else ()
        sure = bool(origins) and all(o in script.training.wraps for o in origins)
        edits.append(owner, ".module") if owner is not None and sure else edits.give_up()
    return edits.fix("Saves what is inside the wrapper.")


def _taken(script: Script, save: ast.Call, parameter: str) -> Iterable[ast.AST]:
    saved = script.given(save, parameter)
    if saved is None:
        return
    if parameter == "model" and script.training.wrapped(saved):
        yield save
    work: list[ast.AST] = list(script.values.origins(saved))
    while work:
        node = work.pop()
        if isinstance(node, ast.Dict):
            work.extend(o for v in node.values for o in script.values.origins(v))
        elif isinstance(node, ast.Call) and script.names.qualified(node.func) == "dict":
            work.extend(o for k in node.keywords for o in script.values.origins(k.value))
        elif (
            (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "state_dict"
            )
            and script.training.wrapped(node.func.value)
            and not _may_be_inner(script, node.func.value)
            and not _chosen_by_kind(script, node)
        ):
            yield node


def _may_be_inner(script: Script, module: ast.expr) -> bool:
    """`model.module if distributed else model`: whichever it is, it is not the wrapper."""
    return any(isinstance(o, ast.Attribute) and o.attr == "module" for o in script.values.origins(module))


def _chosen_by_kind(script: Script, taken: ast.AST) -> bool:
    """`model.module.state_dict() if isinstance(model, DDP) else model.state_dict()`: the other way is the wrapper's."""
    tree = script.names.tree(taken)
    child, above = taken, tree.parent.get(taken)
    while above is not None and child is not tree.function(taken):
        if isinstance(above, ast.IfExp | ast.If) and child is not above.test:
            other = above.orelse if child is above.body or child in _listed(above.body) else above.body
            if any(
                isinstance(n, ast.Attribute) and n.attr == "module"
                for o in _listed(other)
                for n in ast.walk(o)
            ):
                return True
        child, above = above, tree.parent.get(above)
    return False


def _listed(part: ast.AST | list[ast.stmt]) -> list[ast.AST]:
    return [*part] if isinstance(part, list) else [part]


def _strips_prefix(script: Script) -> bool:
    if script.mentioned("consume_prefix_in_state_dict_if_present"):
        return True
    return any(t.constants & {"module.", "_orig_mod.", "module"} for t in script.trees)


def check_run(evidence: Evidence) -> Observation:
    """Flag weights whose names all carry the wrapper's prefix, or came out wrong where it was taken off."""
    evaluation = evidence.evaluation
    letters = list(_letters_stripped(evidence.script))
    if letters and evaluation is not None and evaluation.artifact and evaluation.problem is not None:
        return flagged(*letters)
    if evaluation is not None and evaluation.artifact and evaluation.problem is None:
        if evaluation.prefix:
            return flagged(
                _run_hit(evidence, evaluation.prefix, evaluation.artifact, EvidenceKind.EVALUATION)
            )
        return verified(
            f"The names in `{evaluation.artifact}` are those of the bare network.", EvidenceKind.EVALUATION
        )
    saves = [s for r in evidence.trace.ranks for s in r.saves if s.out and s.num_tensors]
    if not saves:
        return not_observable("No checkpoint was written.")
    if saves[-1].prefix:
        return flagged(_run_hit(evidence, saves[-1].prefix, saves[-1].path, EvidenceKind.TRACE))
    return verified(f"The names in `{saves[-1].path}` are those of the bare network.")


def _run_hit(seen: Evidence, prefix: str, path: str, evidence: EvidenceKind) -> Hit:
    from grader.checks.run.models.double_wraps import outer_wraps, twice_wrapped

    saves = [s for r in seen.trace.ranks for s in r.saves if s.prefix]
    ranks = seen.trace.ranks if prefix == "module." else ()
    twice = next((found for r in ranks if (found := twice_wrapped(r)) is not None), None)
    wraps = outer_wraps(seen.script, *twice) if twice is not None else ()
    what, hint = "the wrapped model", "Save `model.module.state_dict()`."
    if twice is not None:
        again = seen.script.at(wraps[0]) if wraps else at(twice[0].site, "The script")
        what = f"what one `.module` leaves of a model in two wrappers, which {again} has wrapped again"
        hint = "Wrap the model once: `.module` then is the bare network."
    return Hit(
        message=(
            f"Every name in `{path}` begins with `{prefix}`: "
            f"{at(saves[0].site if saves else None, 'the script')} saves {what}. The grader strips "
            "the prefix; a script that loads the weights into the bare network gets "
            "missing keys."
        ),
        hint=hint,
        where=(*places(s.site for s in saves), *lines(seen.script, wraps)),
        details={"prefix": prefix, "path": path},
        evidence=evidence,
    )
