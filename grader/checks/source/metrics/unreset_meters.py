"""Counts and meters that live through all epochs and are never set back: each figure is a mean over all epochs so far.

A meter is made before the loop over epochs, grows in the validation pass within, and neither the loop nor the meter
itself empties it. Where anything might, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, Function, start, steps_up, walk
from grader.checks.source.training_loops import Draw

_EMPTYING = ("__init__", "clear", "copy_", "fill_", "reset", "reset_", "zero_")
_LIBRARIES = ("torchmetrics.", "torcheval.metrics.", "ignite.metrics.")
_MAX_DEPTH = 4


def unreset_meters(script: Script, figure: Sequence[ast.expr]) -> Iterator[Cause]:
    """Those that a figure is read from."""
    for read in figure:
        if isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load):
            yield from _meters(script, read)
        if isinstance(read, ast.Name | ast.Attribute) and isinstance(read.ctx, ast.Load):
            yield from _counts(script, read)


def _meters(script: Script, read: ast.Attribute) -> Iterator[Cause]:
    """Objects that add up what they are told: `accuracy` of `accuracy.compute()`."""
    for made in script.values.origins(read.value):
        emptying = _emptying(script, made, read.attr)
        loop = _passed_by(script, read, made) if emptying is not None else None
        if loop is None or emptying is None or _emptied(script, made, emptying) or not _updated(script, made):
            continue
        name, anew = ast.unparse(read.value), script.quote(script.names.tree(made).statement(made))
        where = f"in the loop at {script.at(loop)}, before the validation pass"
        others = [c for c in script.called(*emptying) if loop in _around(script, c)]
        like = f", as {script.quote(others[0])} at {script.at(others[0])} does" if others else ""
        yield Cause(
            (made, *others[:1]),
            f"Call `{name}.{min(emptying)}()` {where}{like}."
            if emptying
            else f"Make it anew {where}: {anew}.",
            _says(script, made, name, loop),
        )


def _counts(script: Script, read: ast.Name | ast.Attribute) -> Iterator[Cause]:
    """Plain sums: `correct` of `correct / total`."""
    tree, name = script.names.tree(read), ast.unparse(read)
    grows = [(d, n) for d in script.training.draws if d.evaluates for n in _growing(d, name)]
    if not grows:
        return
    bound = (
        script.names.lookup(name, read) if isinstance(read, ast.Name) else tree.attributes.get(read.attr, ())
    )
    made = [d.node for d in bound if d.kind == "assign" and d.value is not None]
    loops = [_passed_by(script, read, one) for one in made]
    loop = loops[0] if loops else None
    handed = any(script.graph.targets(c) and name in map(ast.unparse, arguments_of(c)) for c in tree.calls)
    if loop is None or None in loops or handed or len(made) < len([d for d in bound if d.kind != "augment"]):
        return
    if any(_sets_back(n, name) and loop in _around(script, n) for n in ast.walk(tree.root)):
        return
    first = min(made, key=start)
    alone = (
        isinstance(first, ast.Assign)
        and len(first.targets) == 1
        and not isinstance(first.targets[0], ast.Tuple)
    )
    anew = f"Write {script.quote(first)}" if alone else f"Set `{name}` back to 0"
    yield Cause(
        (first,),
        f"{anew} in the loop at {script.at(loop)}, before the validation pass.",
        _says(script, first, name, loop),
    )


def _says(script: Script, made: ast.AST, name: str, loop: ast.AST) -> str:
    return (
        f"{script.at(made)} makes `{name}` once, before the loop at {script.at(loop)}, and nothing sets it back: what "
        "is reported of an epoch is made of all epochs so far."
    )


def _growing(draw: Draw, name: str) -> Iterable[ast.AugAssign]:
    """Where a loop adds to a name, or to an element of it."""
    for node in walk(draw.loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            if ast.unparse(target) == name:
                yield node


def _sets_back(node: ast.AST, name: str) -> bool:
    """`totals.zero_()`, `totals[:] = 0`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _EMPTYING and ast.unparse(node.func.value) == name
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(isinstance(t, ast.Subscript) and ast.unparse(t.value) == name for t in targets)


def _emptying(script: Script, made: ast.AST, read: str) -> set[str] | None:
    """Methods of a meter that set back what others add to; None for what is no meter, or has no sum that is `read`."""
    if isinstance(made, ast.Call) and (script.names.qualified(made.func) or "").startswith(_LIBRARIES):
        return {"reset"}
    kind = script.graph.built_class(made)
    owners = script.graph.family(kind) if kind is not None else []
    methods = [part for owner in owners for part in owner.body if isinstance(part, FUNCTIONS)]
    sums = {ast.unparse(_whole(n.target)) for m in methods for n in walk(m) if isinstance(n, ast.AugAssign)}
    sums = {name for name in sums if name.startswith("self.")}
    reads = (n for m in methods if m.name == read for n in walk(m) if isinstance(n, ast.Attribute))
    if f"self.{read}" not in sums and not any(ast.unparse(n) in sums for n in reads):
        return None
    found = {m.name for m in methods if any(_empties(n, sums) for n in walk(m))}
    return found - {"__init__"}


def _whole(target: ast.expr) -> ast.expr:
    return target.value if isinstance(target, ast.Subscript) else target


def _empties(node: ast.AST, sums: set[str]) -> bool:
    """`self.total = 0`, `self.total.zero_()`, `self.reset()`."""
    if isinstance(node, ast.Assign):
        targets = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
        return any(ast.unparse(_whole(t)) in sums for t in targets)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _EMPTYING and ast.unparse(node.func.value) in {*sums, "self"}


def _emptied(script: Script, made: ast.AST, emptying: set[str]) -> bool:
    """Whether anything in the text may empty a meter: a call on it, or on nobody knows what."""
    for call in script.called(*emptying, "reset"):
        # What a meter does by itself, `_emptying` has looked at.
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "self":
            origins = script.values.origins(call.func.value)
            if made in origins or not any(_known(script, origin) for origin in origins):
                return True
    return False


def _known(script: Script, origin: ast.AST) -> bool:
    named = isinstance(origin, ast.Call) and script.names.qualified(origin.func) is not None
    return named or script.graph.built_class(origin) is not None


def _updated(script: Script, made: ast.AST) -> bool:
    """Whether a validation pass tells a meter anything: `accuracy.update(out, labels)`, `accuracy(out, labels)`."""
    called = (
        call.func.value if isinstance(call.func, ast.Attribute) else call.func
        for draw in script.training.draws
        if draw.evaluates
        for call in script.names.tree(draw.loop).calls_within(draw.loop)
    )
    return any(made in script.values.origins(one) for one in called)


def _passed_by(script: Script, read: ast.AST, made: ast.AST) -> ast.AST | None:
    """The loop over epochs: around a read and around a validation pass, and not around where the meter is made."""
    drawn = [_around(script, d.loop) for d in script.training.draws if d.evaluates]
    again = _around(script, read) - _around(script, made)
    return next((loop for loop in sorted(again, key=start) if any(loop in around for around in drawn)), None)


def _around(script: Script, node: ast.AST, depth: int = 0) -> set[ast.AST]:
    """Loops around a node, also those around calls of its function."""
    tree = script.names.tree(node)
    function: Function | None = tree.function(node)
    # What a loop goes over is made before its first round.
    around = steps_up(tree.parent, node, function)
    loops: set[ast.AST] = {
        a for child, a in around if isinstance(a, LOOPS) and child is not getattr(a, "iter", None)
    }
    for site in script.graph.sites(function) if function is not None and depth < _MAX_DEPTH else ():
        loops |= _around(script, site.call, depth + 1)
    return loops
