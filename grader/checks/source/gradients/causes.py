"""Where the text exchanges, averages or scales gradients otherwise than a run shows to be needed.

Like `causes`, it answers with nodes, the likeliest first, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.gradients.sync_switches import is_no_sync
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.nodes import ancestors, name_of, start, walk

WRAP = (
    "Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, and train through it."
)
_PAST = "torch.autograd.grad"


def exchange_replaced(script: Script) -> Iterable[ast.AST]:
    """What takes the place of the wrapper's exchange or goes past it: a group, a hook, `no_sync`, `autograd.grad`."""
    for wrap in script.training.wraps:
        group = script.given(wrap, "process_group")
        if group is not None:
            yield group
    yield from script.called("register_comm_hook")
    for tree in script.trees:
        for block in tree.withs:
            for item in block.items:
                calls = [n for n in ast.walk(item.context_expr) if isinstance(n, ast.Call)]
                yield from (
                    c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "no_sync"
                )
    yield from script.calls(_PAST)


def exchanging_again(script: Script, replaced: ast.AST) -> str:
    """What to write where one of these stands, so that the wrapper averages among all ranks."""
    node, place = script.quote(replaced), script.at(replaced)
    if not isinstance(replaced, ast.Call) or isinstance(
        script.names.tree(replaced).parent.get(replaced), ast.keyword
    ):
        return f"Leave out `process_group={node.strip('`')}` at {place}: the wrapper then averages among all ranks."
    if script.names.qualified(replaced.func) == _PAST:
        return (
            f"Call `backward()` on the loss in the place of {node} at {place}, and use each parameter's `grad`: the "
            "wrapper averages in the backward pass alone."
        )
    if name_of(replaced) == "register_comm_hook":
        return (
            f"Leave out {node} at {place}, and the wrapper averages by itself; or let the hook return what its "
            "exchange brings, not the bucket that it was given."
        )
    return f"Leave out {node} at {place}, at least for the last backward pass before each step."


def averaged_in_vain(script: Script) -> Iterable[ast.AST]:
    """Averages by hand that do not reach the step: of copies, of some tensors, of weights now and then."""
    for average in script.averaging.all:
        tree = script.names.tree(average.call)
        around = [tree.parent.get(average.call)]
        while isinstance(around[-1], ast.AST) and not isinstance(around[-1], ast.For | ast.FunctionDef):
            around.append(tree.parent.get(around[-1]))
        for above in around:
            if isinstance(above, ast.If):
                yield above.test
            elif isinstance(above, ast.For):
                yield from (test for n in ast.walk(above.iter) for test in getattr(n, "ifs", ()))
    for call in script.called("all_reduce"):
        tensor = script.argument(call, "tensor")
        if isinstance(tensor, ast.Attribute) and tensor.attr == "data":
            tensor = tensor.value
        if not isinstance(tensor, ast.Name):
            continue
        for origin in script.values.origins(tensor):
            if _copies_gradient(origin) and not _put_back(script, call):
                yield origin
                yield call
            elif isinstance(origin, ast.For) and _walks_parameters(origin.iter):
                yield origin.iter


def _copies_gradient(node: ast.AST) -> bool:
    inner = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    return isinstance(node, ast.Call) and {"clone", "grad"} <= {n.attr for n in inner}


def _put_back(script: Script, call: ast.Call) -> bool:
    """Whether the function that reduces copies writes to gradients later."""
    tree = script.names.tree(call)
    scope = tree.function(call) or tree.root
    stored = (t for n in ast.walk(scope) if isinstance(n, ast.Assign) for t in n.targets)
    return any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in stored) or any(
        isinstance(c.func, ast.Attribute) and c.func.attr == "copy_" and "grad" in ast.dump(c.func.value)
        for c in tree.calls_within(scope)
    )


def _walks_parameters(node: ast.expr) -> bool:
    method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return method and name_of(node) in ("parameters", "named_parameters")


def made_here(script: Script, backward: ast.Call) -> bool:
    """Whether a model that the backward pass goes through can be followed to where it was made."""
    for call in script.updates.forwards(backward):
        variable = (
            isinstance(call.func, ast.Name | ast.Attribute) and script.names.qualified(call.func) is None
        )
        if variable and any(isinstance(o, ast.Call) for o in script.values.origins(call.func)):
            return True
    return False


def accumulation_tests(script: Script) -> Iterable[ast.AST]:
    """What lets only some micro-batches step."""
    yield from (a.guard.test for a in script.accumulations.all if a.guard is not None)


def steps_held_back(script: Script) -> Iterable[tuple[ast.Call, ast.AST]]:
    """First steps of `with model.no_sync():` blocks that hold backward *and* step, each with its block."""
    for tree in script.trees:
        for block in tree.withs:
            contexts = [i.context_expr for i in block.items]
            if not any(map(is_no_sync, contexts)):
                continue
            backwards = [b for b in script.training.backwards if any(tree.inside(b, s) for s in block.body)]
            for step in script.updates.steps:
                within = any(tree.inside(step, s) for s in block.body)
                if within and any(start(b) < start(step) for b in backwards):
                    yield step, block
                    break


def scaled_hooks(script: Script) -> Iterable[ast.AST]:
    """Where hooks on tensors multiply or divide gradients by the number of ranks."""
    for call in script.called("register_hook", "register_post_accumulate_grad_hook"):
        if not call.args:
            continue
        hook = call.args[0]
        body = hook if isinstance(hook, ast.Lambda) else script.graph.definition(hook)
        for node in ast.walk(body) if body is not None else ():
            if not is_scaled(node):
                continue
            if script.ranks.world(node.left) or script.ranks.world(node.right):
                yield node


def left_out(script: Script) -> Iterable[ast.AST]:
    """Tests that pick some of the parameters: `[p for p in net.parameters() if p.dim() > 1]`."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if not isinstance(node, ast.ListComp | ast.GeneratorExp):
                continue
            for part in node.generators:
                over = part.iter if isinstance(part.iter, ast.Call) else None
                if over is None or name_of(over) not in ("parameters", "named_parameters"):
                    continue
                if any("grad" not in ast.unparse(c) for t in part.ifs for c in _alternatives(t)):
                    yield node


def _alternatives(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) else [test]


def never_true(script: Script, call: ast.Call) -> ast.expr | None:
    """The test around a call that asks whether a parameter's type is `torch.Tensor`: it is one of a subclass."""
    tree = script.names.tree(call)
    for above in ancestors(tree.parent, call, tree.function(call)):
        for node in walk(above.test) if isinstance(above, ast.If) else ():
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.Eq):
                left, right = node.left, node.comparators[0]
                of_type = isinstance(left, ast.Call) and script.names.qualified(left.func) == "type"
                if of_type and script.names.qualified(right) == "torch.Tensor" and isinstance(above, ast.If):
                    return above.test
    return None


def surely_wrapped(script: Script, owner: ast.AST) -> bool:
    """Every origin is a DDP call, or the model inside one that is trained through its wrapper."""
    origins = script.values.origins(owner, returns=False)
    wraps = script.training.wraps
    if script.values.origins(owner) and all(o in wraps for o in script.values.origins(owner)):
        return True
    if isinstance(owner, ast.Attribute) and owner.attr == "module":
        return surely_wrapped(script, owner.value)
    inner = {
        o
        for w in wraps
        for m in [script.argument(w, "module")]
        if m
        for o in script.values.origins(m, returns=False)
    }
    called = any(
        isinstance(c.func, ast.Name | ast.Attribute) and script.training.wrapped(c.func)
        for b in script.training.backwards
        for c in script.updates.forwards(b)
    )
    return bool(origins) and called and all(isinstance(o, ast.Call) and o in inner for o in origins)
