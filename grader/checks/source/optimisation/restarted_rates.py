"""Rates that are set by hand by a count that begins anew in each epoch, on a curve that is as long as all of them.

`get_lr(it)` with the index of the epoch's loop never comes further than one epoch's part of its curve, again and again.
Who restarts on purpose makes the curve as long as an epoch, or asks the epoch as well: nothing is said of those.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from grader.checks.source.optimisation.rate_causes import set_by_hand
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import same_value
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import VARIABLES, Loop, name_of, names_in, start


@dataclass(frozen=True, slots=True)
class RestartedRate:
    """Such a rate.

    Attributes:
        setter: sets it. count: what begins anew, an epoch's loop or `step = 0` in the loop over epochs.
        length: of the curve, the product with the number of epochs.
        says: what the lines do. hint: what to write.
    """

    setter: ast.AST
    count: ast.AST
    length: ast.BinOp
    says: str
    hint: str


def restarted_rates(script: Script) -> Iterator[RestartedRate]:
    """All of them, each count once."""
    seen: set[ast.AST] = set()
    for setter, rate in set_by_hand(script):
        parts = script.values.closure(rate)
        names = {n.id for n in parts if isinstance(n, ast.Name)}
        for count, name, outer in _counts(script, parts):
            told = names_in(outer.target) & names if isinstance(outer, ast.For) else set[str]()
            length = _of_all_epochs(script, parts, outer) if not told else None
            if length is None or count in seen:
                continue
            seen.add(count)
            yield RestartedRate(
                setter,
                count,
                length,
                f"{script.at(setter)} sets the rate by `{name}`, which begins anew in each epoch ({script.at(count)}), "
                f"on a curve as long as all epochs together, {script.quote(length)} at {script.at(length)}.",
                _hint(script, parts, count, name, outer),
            )


def _counts(script: Script, parts: Collection[ast.AST]) -> Iterator[tuple[ast.AST, str, Loop]]:
    """Counts of steps in what a rate is made of, their names, and the loops over epochs in which they begin anew."""
    names = {n.id for n in parts if isinstance(n, ast.Name)}
    for node in parts:
        # What an index is made of is its loop, or what that goes over.
        loop = script.names.tree(node).parent.get(node) if isinstance(node, ast.Call) else node
        if isinstance(loop, ast.For) and node in (loop, loop.iter):
            index = _index(loop)
            # Handed on, it has another name; what comes beside it, a batch, has not been read then.
            read = index in names or (node is loop and not names_in(loop.target) & names)
            yield from ((loop, index, outer) for outer in _loops_over(script, loop) if index and read)
        grows = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        if grows and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            tree = script.names.tree(node)
            around = script.updates.loops_around(node)
            for made in tree.definitions.get(tree.scope(node), {}).get(node.target.id, []):
                loops = script.updates.loops_around(made.node)[:1]
                begins = made.value is not None and script.values.constant(made.value) in (0, 1)
                if begins and loops and loops[0] in around[1:]:
                    yield made.node, node.target.id, loops[0]


def _index(loop: ast.For) -> str:
    """`it` of `for it, batch in enumerate(loader)` and `for it in range(n)`; "" for others."""
    name = name_of(loop.iter) if isinstance(loop.iter, ast.Call) else ""
    target = loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif name != "range":
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _loops_over(script: Script, inner: ast.For) -> Iterator[Loop]:
    """The loop around an epoch's one, or around the calls of the function that it stands in."""
    around = script.updates.loops_around(inner)
    function = script.names.tree(inner).function(inner)
    yield from around[:1]
    for site in script.graph.sites(function) if function is not None and not around else ():
        yield from script.updates.loops_around(site.call)[:1]


def _of_all_epochs(script: Script, parts: Iterable[ast.AST], outer: Loop) -> ast.BinOp | None:
    """A product with the number of rounds of the loop over epochs."""
    counted = outer.iter if isinstance(outer, ast.For) else None
    if not isinstance(counted, ast.Call) or name_of(counted) != "range" or not counted.args:
        return None
    rounds = counted.args[1] if len(counted.args) > 1 else counted.args[0]
    products = (n for n in parts if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult))
    found = [
        n
        for n in products
        for epochs, steps in ((n.left, n.right), (n.right, n.left))
        if same_value(script.values, epochs, rounds)
        and any(isinstance(p, ast.Call) and name_of(p) == "len" for p in script.values.closure(steps))
    ]
    return min(found, key=start, default=None)


def _hint(script: Script, parts: Iterable[ast.AST], count: ast.AST, name: str, outer: Loop) -> str:
    tree = script.names.tree(count)
    if not isinstance(count, ast.For):
        return (
            f"Count the steps of the whole run: move {script.quote(count)} from {script.at(count)} above the loop at "
            f"{script.at(outer)}."
        )
    epoch = outer.target.id if isinstance(outer, ast.For) and isinstance(outer.target, ast.Name) else ""
    given = count.iter.args[0] if isinstance(count.iter, ast.Call) and len(count.iter.args) == 1 else None
    here = tree.inside(count, outer) and epoch not in ("", "_")
    if not here or given is None:
        return (
            f"Count the steps of the whole run, in place of `{name}`: a number that begins above the loop at "
            f"{script.at(outer)} and grows by 1 with each step."
        )
    batches = node_text(script, given)
    if name_of(count.iter) == "enumerate":
        batches = f"len({batches})" if isinstance(given, VARIABLES) else "len(loader)"
    elif isinstance(given, ast.BinOp | ast.IfExp):
        batches = f"({batches})"
    whole = f"{epoch} * {batches} + {name}"
    used = next((n for n in parts if isinstance(n, ast.Call) and _reads(script, n, name, count)), None)
    if used is None:
        return f"Count the steps of the whole run: write `{whole}` for `{name}` where the rate is made."
    written = ast.unparse(_Renamed(name, whole).visit(ast.parse(ast.unparse(used), mode="eval")))
    return (
        f"Count the steps of the whole run: write `{written}` for {script.quote(used)} at {script.at(used)}."
    )


def _reads(script: Script, call: ast.Call, name: str, loop: ast.For) -> bool:
    """Whether a call in a loop is given its index as it is."""
    given = (*call.args, *(k.value for k in call.keywords))
    return script.names.tree(call).inside(call, loop) and any(
        isinstance(a, ast.Name) and a.id == name for a in given
    )


class _Renamed(ast.NodeTransformer):
    """Puts an expression in the place of a name."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self._text, mode="eval").body if node.id == self._name else node
