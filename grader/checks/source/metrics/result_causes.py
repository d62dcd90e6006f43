"""Which line makes a result that a task's scorer found to be wrong, by what the scorer says the numbers are.

Reads the scorer's sentence for the computation that it recognised, and finds that computation in the text. Decides
nothing: where the text does not show it, the advice is the formula alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from grader.checks.source.causes import made_single
from grader.checks.source.collectives.byte_units import units
from grader.checks.source.collectives.collective_calls import COMMON_REDUCING
from grader.checks.source.collectives.ring_laps import lap_cause
from grader.checks.source.collectives.wrong_ranks import wrong_ranks
from grader.checks.source.data.torn_pairs import torn_pairs
from grader.checks.source.gradients.double_weights import weighted_twice
from grader.checks.source.gradients.kept_hooks import kept_hooks
from grader.checks.source.gradients.packed_gradients import PACK_FORMULA, packed
from grader.checks.source.gradients.weights import (
    SUM_FORMULA,
    alone,
    divided,
    multiplied,
    of_some,
    unweighted,
)
from grader.checks.source.metrics.number_causes import number_cause
from grader.checks.source.metrics.recorded_losses import Cause, losses, only_read, reduced, scaled
from grader.checks.source.metrics.result_formulas import formula
from grader.checks.source.metrics.written_values import where_written
from grader.checks.source.optimisation.stopping_rules import stopped_early
from grader.checks.source.optimisation.weight_steps import weight_step
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, READS, ancestors, end, name_of, start
from grader.model.finding import Location

_LOSS_FORMULA = (
    "Each row holds the mean over that rank's own samples: not weighted, and not reduced over the ranks."
)
_SHARE_FORMULA = (
    "Let each rank take the gradient of the mean loss of its own share, and bring that into the sum, times m/n: "
    "`part = parameter.grad * (num_own / num_all)`, `dist.all_reduce(part)`."
)
_START_FORMULA = (
    "A rank's share begins where those of the ranks before it end: at the sum of the first `rank` shares."
)
_CLEAR_FORMULA = "Every rank clears its gradients before each round, also a rank that has no samples in it."
_SINGLE_FORMULA = "Leave the weights and the batch in float64, as they are made."
_MESSAGE_FORMULA = (
    "Hand it on in messages: in each of `world_size - 1` rounds `dist.isend` one chunk to the next rank, while "
    "`dist.irecv` takes another from the rank before."
)
_ALONE_FORMULA = (
    "One rank has nothing to weigh and nothing to add: store what `parameter.grad` holds right after the backward pass "
    "over the whole batch, each under the name of its own parameter."
)
_PARTS_FORMULA = (
    "No weights make that of the ranks' own gradients, so one of these is another already: look at which inputs and "
    "which targets a rank takes, at its loss (the mean over all elements), and at what is done to it afterwards."
)
_OTHER_LOSS_FORMULA = (
    "It is no multiple of that mean, and no mean over ranks: look at which inputs and which targets it is computed of, "
    "and that the loss is the mean over all elements."
)
_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.py):(\d+)\b")


def cause_of(script: Script, said: str) -> Cause:
    """What made a result wrong; without nodes where the text does not show it, and never without advice."""
    cause = _known(script, said)
    return cause if cause.advice else Cause(cause.nodes, formula(said))


def _known(script: Script, said: str) -> Cause:
    if (known := number_cause(script, said) or lap_cause(script, said)) is not None:
        return known if known.nodes else Cause(where_written(script, said), known.advice)
    for words, find, right in _KNOWN:
        if words in said:
            found = find(script) if find is not None else None
            others = wrong_ranks(script) if found is None and right in _OF_SUMS else None
            cause = found or others or Cause((), right)
            return cause if cause.advice else Cause(cause.nodes, right)
    cause = units(script, said) or stopped(script, said) or Cause((), "")
    return cause if cause.nodes else Cause(where_written(script, said), cause.advice)


def stopped(script: Script, said: str) -> Cause | None:
    """What a sentence about the end of training is about; None for others."""
    return stopped_early(script, said) if " stops at epoch " in said or " goes on to epoch " in said else None


def places_in(script: Script, said: str) -> tuple[Location, ...]:
    """Lines that a scorer's sentence names itself, as `train.py:68`."""
    found = [Location(path, int(line)) for path, line in _PLACE.findall(said)]
    return tuple(place for place in found if script.line(place.path, place.line or 0))


def _single(script: Script) -> Cause | None:
    return Cause(tuple(made_single(script)), _SINGLE_FORMULA)


def _kept(script: Script) -> Cause | None:
    """Gradients of an earlier round: cleared by some ranks only, or by nobody."""
    clears = [c for c in script.updates.clears if isinstance(c, ast.expr | ast.stmt)]
    for clear in clears:
        branch = _branch(script, clear)
        if branch is not None:
            statement = script.names.tree(clear).statement(clear)
            text = _emptied(script, ast.unparse(statement))
            return Cause(
                (statement, branch.test),
                f"Put `{text}` in front of `if {ast.unparse(branch.test)}:`, so that ranks without samples clear, too.",
            )
    for backward in script.training.backwards:
        tree = script.names.tree(backward)
        beside = [
            c for c in clears if script.names.tree(c) is tree and tree.function(c) is tree.function(backward)
        ]
        if any(script.updates.loops_around(c) == script.updates.loops_around(backward) for c in beside):
            continue
        model = _model(script, backward)
        if model is None:
            continue
        before: ast.AST = _branch(script, backward) or tree.statement(backward)
        bound = _taken_from_outside(script, model)
        text = _emptied(script, f"{ast.unparse(model)}.zero_grad()")
        where = f"`if {ast.unparse(before.test)}:`" if isinstance(before, ast.If) else script.quote(before)
        return Cause(
            (*bound, backward),
            f"Put `{text}` in front of {where} ({script.at(before)}): `backward` adds to what is there.",
        )
    return None


def _branch(script: Script, node: ast.AST) -> ast.If | None:
    """The outermost `if` of the round that a node stands under and what the ranks exchange later does not."""
    tree = script.names.tree(node)
    exchanges = [c for c in tree.called(*COMMON_REDUCING, "send") if tree.function(c) is tree.function(node)]
    found = None
    for above in ancestors(tree.parent, node, (*FUNCTIONS, *LOOPS)):
        if isinstance(above, ast.If) and any(start(c) > end(above) for c in exchanges):
            found = above if not any(tree.inside(c, above) for c in exchanges) else found
    return found


def _emptied(script: Script, text: str) -> str:
    """`model.zero_grad()`, so that gradients stay tensors where the script reads them without asking for None."""
    tested = any(
        isinstance(n, ast.Compare) and isinstance(n.left, ast.Attribute) and n.left.attr == "grad"
        for tree in script.trees
        for n in ast.walk(tree.root)
    )
    return text if tested else text.replace(".zero_grad()", ".zero_grad(set_to_none=False)")


def _model(script: Script, backward: ast.Call) -> ast.expr | None:
    """The network whose call had a part in what goes backward."""
    for call in script.updates.forwards(backward):
        if isinstance(call.func, ast.Name | ast.Attribute) and call.args:
            origins = script.values.origins(call.func)
            if any(isinstance(o, ast.Call) for o in origins):
                return call.func
    return None


def _taken_from_outside(script: Script, model: ast.expr) -> tuple[ast.AST, ...]:
    """Where the round takes a network that others have used: `model = MODEL`."""
    if not isinstance(model, ast.Name):
        return ()
    reaching = script.scopes.reaching(model.id, model)
    same = [
        d
        for d in reaching
        if script.names.tree(d.node).function(d.node) is script.names.tree(model).function(model)
    ]
    return tuple(d.node for d in same if d.kind == "assign" and isinstance(d.value, READS))


def _recorded(script: Script) -> Cause | None:
    return scaled(script) or reduced(script) or only_read(script, _LOSS_FORMULA)


def _shared(script: Script) -> Cause | None:
    return reduced(script) or _started(script) or scaled(script)


def _started(script: Script) -> Cause | None:
    """Where a share of the batch begins."""
    for node in _parts(script):
        if isinstance(node, ast.Call) and name_of(node) == "sum" and len(node.args) == 1:
            inner = node.args[0]
            span = inner.slice if isinstance(inner, ast.Subscript) else None
            if isinstance(span, ast.Slice) and span.upper is not None:
                rank = _rank_in(script, span.upper)
                if rank is None or (span.lower is None and span.upper is rank):
                    continue
                assert isinstance(inner, ast.Subscript), "it has a slice"
                right = f"sum({ast.unparse(inner.value)}[:{ast.unparse(rank)}])"
                return Cause((node,), f"Write `{right}`: the shares of the ranks before this one.")
    found: list[ast.AST] = []
    for node in _parts(script):
        if isinstance(node, ast.Slice) and node.lower is not None:
            origins = script.scopes.reaching(node.lower.id, node) if isinstance(node.lower, ast.Name) else ()
            found += [d.node for d in origins if d.kind in ("assign", "augment")] or [node.lower]
        elif isinstance(node, ast.Call) and name_of(node) == "slice" and node.args:
            origins = (
                script.scopes.reaching(node.args[0].id, node) if isinstance(node.args[0], ast.Name) else ()
            )
            found += [d.node for d in origins if d.kind in ("assign", "augment")] or [node]
    advice = next((text for n in found if (text := _start_of(script, n))), _START_FORMULA)
    return Cause(tuple(dict.fromkeys(found))[:2], advice) if found else None


def _start_of(script: Script, node: ast.AST) -> str:
    """`sum(SHARES[k][:rank])` in the names of a line that computes where a share begins; "" where it lacks them."""
    parts = list(ast.walk(node))
    rank = _rank_in(script, node)
    for part in parts if rank is not None else ():
        held = script.values.origins(part.value) if isinstance(part, ast.Subscript) else ()
        if any(isinstance(o, ast.Dict) for o in held) and rank is not None:
            right = f"sum({ast.unparse(part)}[:{ast.unparse(rank)}])"
            return f"Begin this rank's share at `{right}`: the shares of the ranks before it."
    return ""


def _parts(script: Script) -> Iterable[ast.AST]:
    for loss in losses(script):
        yield from sorted(script.values.closure(loss), key=start)


def _rank_in(script: Script, node: ast.AST) -> ast.Name | ast.Attribute | None:
    """The rank that a line reads, what is called so first."""
    read = [
        n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)
    ]
    named = [n for n in read if "rank" in name_of(n).lower() and not script.ranks.world(n)]
    return next(iter((*named, *(n for n in read if script.ranks.rank(n)))), None)


_OF_SUMS = (SUM_FORMULA, _PARTS_FORMULA)
_Find = Callable[[Script], Cause | None]
_KNOWN: tuple[tuple[str, _Find | None, str], ...] = (
    ("has no row", None, "Write one row for each of them, in one run."),
    (
        "has no `",
        None,
        'Store it under that very name, such as `f"{world_size}/{name}"`, for each world size.',
    ),
    ("is float32;", _single, _SINGLE_FORMULA),
    ("an earlier world size", _kept, _CLEAR_FORMULA),
    (
        "no gradient of its share is in the sum",
        None,
        _SHARE_FORMULA,
    ),
    (
        "says that it had",
        None,
        "A rank's samples are as many as the table of shares gives to it, at each world size.",
    ),
    ("; its share is", _started, _START_FORMULA),
    ("the same for all ranks", _shared, _LOSS_FORMULA),
    ("What it tells is", _recorded, _LOSS_FORMULA),
    ("it is the right sum divided", divided, SUM_FORMULA),
    ("and the others are right", of_some, SUM_FORMULA),
    ("times the right one", multiplied, SUM_FORMULA),
    (
        "counted twice",
        weighted_twice,
        "Weigh with m/n once: in what goes backward, or in what is summed, and not in both.",
    ),
    ("share alone", alone, SUM_FORMULA),
    ("own part alone", alone, SUM_FORMULA),
    ("in the wrong places", packed, PACK_FORMULA),
    ("of its largest element: it is", unweighted, SUM_FORMULA),
    ("At world size 1 the gradient is off", None, _ALONE_FORMULA),
    ("of its largest element", weight_step, _PARTS_FORMULA),
    ("tells a loss of", weight_step, _OTHER_LOSS_FORMULA),
    ("that is the library's work", None, _MESSAGE_FORMULA),
    ("nothing of x came into it", torn_pairs, "Take each batch's `x` and `y` by the same numbers of points."),
    (
        "counted once more in each",
        kept_hooks,
        "Count for each batch size anew, with nothing left of the one before.",
    ),
)
"""Words of the scorers' sentences, what finds the line, and what is right where no line is found."""
