"""Where a loss that the script writes down stopped being the mean over the rank's own samples: scaled, or reduced.

Asked only where what was written has been seen to be another number; it says which line makes it so, decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.causes import went_backward
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start
from grader.checks.source.values.data_flow import is_printed, reads_after, source_text

_READ = ("item", "tolist", "detach")
_SCALING = {"mul_": "*", "div_": "/"}
_LOSSES = ("cross_entropy", "mean", "pow", "square", "sum")
_SIGNS: dict[type[ast.operator], str] = {ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True, slots=True)
class Cause:
    """What made a result wrong: nodes, the likeliest first, what to write there, and what it is as sentences."""

    nodes: tuple[ast.AST, ...]
    advice: str
    says: str = ""


def losses(script: Script) -> list[ast.expr]:
    """What gradients are computed of: by `backward`, or by `torch.autograd.grad`."""
    graded = (c.args[0] for c in script.calls("torch.autograd.grad") if c.args)
    return [*went_backward(script), *graded]


def scaled(script: Script) -> Cause | None:
    """The loss is multiplied or divided before it is read for the record."""
    shared = _calls_of(script, losses(script))
    for read in _reads(script):
        parent = script.names.tree(read).parent.get(_outermost(script, read))
        if isinstance(parent, ast.BinOp) and type(parent.op) in _SIGNS and _of(script, read, shared):
            return Cause((parent,), f"Write down `{ast.unparse(read)}` alone, without the factor.")
        loss = called_on(read) or read
        if not source_text(loss) or not _of(script, loss, shared):
            continue
        for definition in script.scopes.reaching(ast.unparse(loss), loss):
            cause = _scaled_by(script, definition.node, read, shared)
            if cause is not None:
                return cause
        for call in script.called(*_SCALING):
            owner = called_on(call) or call
            same = script.names.tree(call).function(call) is script.names.tree(read).function(read)
            if same and ast.unparse(owner) == ast.unparse(loss) and start(call) < start(read) and call.args:
                sign, factor = _SCALING[name_of(call)], call.args[0]
                return Cause((call, read), _take_out(script, call, loss, sign, factor))
    return None


def reduced(script: Script) -> Cause | None:
    """The loss that is written down went through a reduction first, so that it is no rank's own any more."""
    shared = _calls_of(script, losses(script))
    for call, _, tensor in sorted(reductions(script), key=lambda found: start(found[0])):
        if not _of(script, tensor, shared):
            continue
        tree = script.names.tree(call)
        reads = [r for r in reads_after(script, tensor, call) if tree.scope(r) is tree.scope(call)]
        statement = next((tree.statement(r) for r in reads if not tree.inside(r, call)), None)
        nodes = (call,) if statement is None else (statement, call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        before = _held_before(script, target, call) if isinstance(target, ast.Name) else None
        if isinstance(target, ast.Name) and before is not None and statement is not None:
            return Cause(
                nodes,
                f"Leave out {script.quote(statement)}: since {script.at(before)} `{target.id}` holds the mean over "
                "this rank's own samples, and that is what its row is to hold.",
            )
        own = next((ast.unparse(r) for r in _reads(script) if _of(script, r, shared)), "loss.item()")
        return Cause(nodes, f"Put `{own}`, as it is before {script.quote(call)}, into this rank's own row.")
    return None


def only_read(script: Script, advice: str) -> Cause | None:
    """The one place where a tensor becomes a number for the record, where there is but one."""
    reads = [r for r in _reads(script) if name_of(r) != "detach"]
    return Cause((reads[0],), advice) if len({script.location(r).line for r in reads}) == 1 else None


def _held_before(script: Script, name: ast.Name, before: ast.AST) -> ast.AST | None:
    """Where a name got the value of a read (`loss.item()`) above a line of its function."""
    tree = script.names.tree(before)
    for definition in tree.definitions.get(tree.scope(before), {}).get(name.id, []):
        read = definition.value
        if isinstance(read, ast.Call) and name_of(read) in _READ and definition.since <= start(before):
            return definition.node
    return None


def _reads(script: Script) -> list[ast.Call]:
    """Where tensors become numbers for the record; what is only printed is none of these."""
    found = [c for c in script.called(*_READ) if isinstance(c.func, ast.Attribute) and not c.args]
    found += [c for c in script.calls("float") if len(c.args) == 1]
    return sorted((c for c in found if not is_printed(script, c)), key=start)


def _outermost(script: Script, read: ast.Call) -> ast.AST:
    """`loss.detach().item()` as a whole, where the read is its first part."""
    node: ast.AST = read
    parents = script.names.tree(read).parent
    while isinstance(parents.get(node), ast.Attribute) and isinstance(parents.get(parents[node]), ast.Call):
        node = parents[parents[node]]
    return node


def _scaled_by(script: Script, node: ast.AST, read: ast.AST, shared: set[ast.Call]) -> Cause | None:
    if isinstance(node, ast.AugAssign) and type(node.op) in _SIGNS:
        return Cause((node, read), _take_out(script, node, node.target, _SIGNS[type(node.op)], node.value))
    value = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if not isinstance(node, ast.Assign) or not isinstance(value, ast.BinOp) or type(value.op) not in _SIGNS:
        return None
    # `loss * m / n` is scaled twice: what is left of both is the loss.
    plain: ast.expr = value
    while isinstance(plain, ast.BinOp) and type(plain.op) in _SIGNS and _of(script, plain.left, shared):
        plain = plain.left
    factor = ast.unparse(value).removeprefix(ast.unparse(plain))
    if plain is value:
        if not _of(script, value.right, shared) or not isinstance(value.op, ast.Mult):
            return None
        plain, factor = value.right, f" * {_bracketed(value.left)}"
    target = ast.unparse(node.targets[0])
    written = ast.unparse(plain)
    first = (
        f"Leave out {script.quote(node)}." if written == target else f"Write `{target} = {written}` there."
    )
    return Cause(
        (node, read), f"{first} {_backward(script, target, factor)}: the row then holds the mean itself."
    )


def _take_out(script: Script, node: ast.AST, loss: ast.AST, sign: str, factor: ast.expr) -> str:
    return (
        f"Leave out {script.quote(node)}, which changes the loss itself. "
        f"{_backward(script, ast.unparse(loss), f' {sign} {_bracketed(factor)}')}: the row then holds the mean itself."
    )


def _bracketed(factor: ast.expr) -> str:
    text = ast.unparse(factor)
    return f"({text})" if isinstance(factor, ast.BinOp | ast.IfExp | ast.BoolOp | ast.Compare) else text


def _backward(script: Script, loss: str, factor: str) -> str:
    """`Write (loss * w).backward()` for the backward pass or the call of `torch.autograd.grad` that takes the loss."""
    for call in script.training.backwards:
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == loss:
            return f"Write `({loss}{factor}){ast.unparse(call).removeprefix(loss)}` for {script.quote(call)}"
    for call in script.calls("torch.autograd.grad"):
        if call.args and ast.unparse(call.args[0]) == loss:
            return f"Give `{loss}{factor}` to {script.quote(call)} in place of `{loss}`"
    return f"Scale only what goes backward, `({loss}{factor}).backward()`"


def _calls_of(script: Script, values: Iterable[ast.expr]) -> set[ast.Call]:
    """Calls that had a part in these values, calls of models and losses among them."""
    return {n for value in values for n in script.values.closure(value) if isinstance(n, ast.Call)}


def _of(script: Script, node: ast.AST, shared: set[ast.Call]) -> bool:
    """Whether a value comes from the loss: the call that made the loss has a part in it, too."""
    return any(
        n in shared
        and ("loss" in name_of(n) or (isinstance(n.func, ast.Attribute) and name_of(n) in _LOSSES))
        for n in script.values.closure(node)
        if isinstance(n, ast.Call)
    )
