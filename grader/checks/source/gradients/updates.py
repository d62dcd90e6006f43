"""What the text does with gradients: who steps on them, who clears or clips them, and in which round of which loop.

Knows loops through the submission's own functions: a round may be a function that a loop calls. It says where things
stand; whether that is right is for rules to say.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.sites import Calls, CallSite
from grader.checks.source.calls.ways import leading_to, ways_to
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import (
    LOOPS,
    Loop,
    Place,
    end,
    literal,
    name_of,
    start,
    steps_up,
    walk,
    walked_by,
)
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import Training
from grader.checks.source.values.sources import Values

_MAX_DEPTH = 6
_OPTIMIZER_NAME = re.compile(r"optim|^_?opt(_|\d|$)|_opt$|^opt[a-z]$", re.IGNORECASE)
_OTHER_NAME = re.compile(r"sched|profil|(^|_)prof$|warmup|(^|_)env(s|_|$)", re.IGNORECASE)
_OPTIMIZER_HOMES = (
    "torch.optim.", "torch.distributed.optim.", "apex.optimizers.", "bitsandbytes.optim.", "timm.optim.",
    "transformers.AdamW", "transformers.Adafactor", "transformers.optimization.Ada",
)  # fmt: skip
_NO_OPTIMIZERS = ("lr_scheduler", "swa_utils")
_CLEARING_NAME = re.compile(r"^(?>\w*?(?:zero|clear|reset|null))\w*grad", re.IGNORECASE)
_CLIPPING = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grads_with_norm_")
_EMPTYING = {"zero_", "fill_", "_foreach_zero_"}
# Calls on or with an optimizer whose whole effect on gradients is known.
_KNOWN_WITH_OPTIMIZER = {
    "step", "unscale_", "update", "append", "print", "len", "isinstance", "range", "scale",
}  # fmt: skip
_VIEWS = {"detach", "view", "flatten", "contiguous", "to", "to_local"}
"""Methods that give the same gradient, or this rank's part of it."""


class Updates:
    """Optimizers and what is done to gradients, over all files."""

    def __init__(
        self, trees: tuple[Tree, ...], names: Names, calls: Calls, values: Values, training: Training
    ) -> None:
        self._trees, self._names, self._calls = trees, names, calls
        self._values, self._training = values, training
        self._optimizers: tuple[ast.Call, ...] | None = None
        self._steps: tuple[ast.Call, ...] | None = None
        self._clears: tuple[ast.AST, ...] | None = None
        self._running: dict[tuple[ast.AST, ...], frozenset[ast.AST]] = {}
        self._placed: dict[tuple[Tree, tuple[ast.AST, ...]], list[tuple[Place, int, ast.AST]]] = {}
        self._forwards: dict[ast.Call, tuple[ast.Call, ...]] = {}
        self._own_optimizers = {c for tree in trees for c in tree.classes if self._is_optimizer_class(c)}

    @property
    def optimizers(self) -> tuple[ast.Call, ...]:
        """Calls that build an optimizer."""
        if self._optimizers is None:
            self._optimizers = tuple(c for t in self._trees for c in t.calls if self._builds_optimizer(c))
        return self._optimizers

    @property
    def steps(self) -> tuple[ast.Call, ...]:
        """Calls that make an optimizer step, `scaler.step(optimizer)` among them."""
        if self._steps is None:
            self._steps = tuple(c for t in self._trees for c in t.called("step") if self._is_step(c))
        return self._steps

    @property
    def clears(self) -> tuple[ast.AST, ...]:
        """Places that clear gradients: `zero_grad`, `p.grad = None`, `p.grad.zero_()`, and what is named so."""
        if self._clears is None:
            self._clears = tuple(n for tree in self._trees for n in self._find_clears(tree))
        return self._clears

    @property
    def assigned(self) -> list[ast.AST]:
        """Where the script makes anything a gradient by hand, such as a view of one tensor that holds them all."""
        return [node for tree in self._trees for node, value in _stores(tree) if not _is_empty(value)]

    @property
    def clips(self) -> list[ast.Call]:
        """Calls that clip gradients by norm or by value."""
        return [
            c
            for tree in self._trees
            for c in tree.called(*_CLIPPING)
            if (self._names.qualified(c.func) or "torch.").startswith(("torch.", "apex."))
        ]

    def stepped(self, step: ast.Call) -> ast.expr | None:
        """The optimizer of a step."""
        parts: list[ast.expr] = [*step.args]
        if isinstance(step.func, ast.Attribute):
            parts.append(step.func.value)
        for part in parts:
            if self.is_optimizer(part):
                return part
        return None

    def is_optimizer(self, node: ast.AST) -> bool:
        """Whether an expression holds an optimizer, by its origin or, where that is unknown, by its name."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return False
        origins = self._values.origins(node)
        if any(isinstance(o, ast.Call) and self._builds_optimizer(o) for o in origins):
            return True
        named = name_of(node.value if isinstance(node, ast.Subscript) else node)
        return bool(_OPTIMIZER_NAME.search(named)) and not _OTHER_NAME.search(named)

    def sites(self, function: ast.AST) -> list[CallSite]:
        """Places that call a function of the submission."""
        return self._calls.sites(function)

    def running(self, nodes: Sequence[ast.AST]) -> frozenset[ast.AST]:
        """Functions in which one of these nodes stands, or that call such a function."""
        key = tuple(nodes)
        if key not in self._running:
            self._running[key] = frozenset(leading_to(self._names, self._calls, nodes))
        return self._running[key]

    def entries(self, outer: ast.AST, nodes: Sequence[ast.AST]) -> list[ast.AST]:
        """Where one of these nodes is reached inside `outer`: the node itself, or a call that leads to it."""
        found = self._within(outer, tuple(nodes))
        functions = self.running(nodes)
        for call in self._names.tree(outer).calls_within(outer):
            if call not in found and any(t in functions for t in self._calls.targets(call)):
                found.append(call)
        return found

    def _within(self, outer: ast.AST, nodes: tuple[ast.AST, ...]) -> list[ast.AST]:
        """Those of the nodes that stand inside `outer`, which are few of many where a script has many loops."""
        tree = self._names.tree(outer)
        if (tree, nodes) not in self._placed:
            placed = [(start(n), i, n) for i, n in enumerate(nodes) if self._names.tree(n) is tree]
            self._placed[tree, nodes] = sorted(placed)
        found = self._placed[tree, nodes]
        if not isinstance(outer, ast.Module):
            found = found[bisect_left(found, (start(outer),)) : bisect_left(found, (end(outer),))]
        return [n for _, _, n in sorted(found, key=itemgetter(1)) if tree.inside(n, outer)]

    def rounds(self, node: ast.AST, *needed: Sequence[ast.AST]) -> list[Loop]:
        """The innermost loops around a node that also reach each of the `needed` groups, one per way to the node."""
        found: dict[ast.AST, Loop] = {}
        for place in ways_to(
            self._names, self._calls, node, most=_MAX_DEPTH, goes_on=lambda place: place not in found
        ):
            for loop in self.loops_around(place):
                if all(self.entries(loop, nodes) for nodes in needed):
                    found[place] = loop
                    break
        return list(dict.fromkeys(found.values()))

    def loops_around(self, node: ast.AST) -> list[Loop]:
        """Loops around a node inside its own function, innermost first."""
        tree = self._names.tree(node)
        around = steps_up(tree.parent, node, tree.function(node))
        return [above for child, above in around if isinstance(above, LOOPS) and child in above.body]

    def hands_on_optimizer(self, loop: Loop) -> bool:
        """Whether an optimizer is given to a call that nobody can look into: it may do anything with gradients."""
        for call in self._names.tree(loop).calls_within(loop):
            name = name_of(call)
            if name in _KNOWN_WITH_OPTIMIZER or name in _CLIPPING or self._calls.targets(call):
                continue
            parts = arguments_of(call)
            if any(self.is_optimizer(p) for p in parts):
                return True
        return False

    def together(self, a: ast.AST, b: ast.AST) -> bool:
        """Whether two places of one function can both run in one round: not in different branches of an `if`."""
        tree = self._names.tree(a)
        for child, above in steps_up(tree.parent, a):
            if isinstance(above, ast.If) and tree.inside(b, above):
                other = above.orelse if child in above.body else above.body
                return not any(tree.inside(b, s) for s in other)
        return True

    def forwards(self, backward: ast.Call) -> tuple[ast.Call, ...]:
        """Calls that had a part in the value a backward pass starts from."""
        if backward not in self._forwards:
            parts: list[ast.AST] = [*backward.args]
            if isinstance(backward.func, ast.Attribute):
                parts.append(backward.func.value)
            found = (n for p in parts for n in self._values.closure(p) if isinstance(n, ast.Call))
            self._forwards[backward] = tuple(found)
        return self._forwards[backward]

    def is_gradient(self, node: ast.AST) -> bool:
        """Whether an expression is a gradient (or gradients made into one tensor), not a number computed from some."""
        if isinstance(node, ast.Attribute):
            if node.attr == "grad":
                return True
            return node.attr in ("data", "_local_tensor") and self.is_gradient(node.value)
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Attribute) and func.attr in _VIEWS:
                return self.is_gradient(func.value)
            if any(w in name_of(node) for w in ("flatten", "cat", "stack")):
                return any(map(reads_gradient, self._values.closure(node)))
            return False
        if isinstance(node, ast.Name):
            for origin in self._values.origins(node):
                if origin is node:
                    continue
                if isinstance(origin, ast.For | ast.comprehension):
                    if self._walks_gradients(origin, node.id):
                        return True
                elif not isinstance(origin, ast.Name) and self.is_gradient(origin):
                    return True
        return False

    def _walks_gradients(self, loop: ast.For | ast.comprehension, name: str) -> bool:
        """`for g in grads` or `for p, g in zip(params, grads)`, where `grads` is a list of `p.grad`."""
        over = walked_by(loop, name)
        for origin in self._values.origins(over) if over is not None else ():
            element = getattr(origin, "elt", None)
            if element is not None and self.is_gradient(element):
                return True
        return False

    def _builds_optimizer(self, call: ast.Call) -> bool:
        name = self._names.qualified(call.func) or ""
        if name.startswith(_OPTIMIZER_HOMES) and not any(n in name for n in _NO_OPTIMIZERS):
            return name.rpartition(".")[2][:1].isupper()
        return bool(self._own_optimizers) and self._calls.built_class(call) in self._own_optimizers

    def _is_optimizer_class(self, owner: ast.ClassDef) -> bool:
        return any((self._names.qualified(b) or "").startswith("torch.optim.") for b in owner.bases)

    def _is_step(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and self.stepped(call) is not None

    def _find_clears(self, tree: Tree) -> Iterable[ast.AST]:
        named = tree.attribute_loads.get("zero_grad", ())
        yield from (n for n in named if not isinstance(tree.parent.get(n), ast.Expr))
        yield from (node for node, value in _stores(tree) if _is_empty(value))
        yield from (c for c in tree.called("delattr") if len(c.args) > 1 and literal(c.args[1]) == "grad")
        yield from (t for d in tree.deletions for t in d.targets if getattr(t, "attr", "") == "grad")
        for call in tree.called_like(lambda name: name in _EMPTYING or _CLEARING_NAME.search(name)):
            name = name_of(call)
            if name in _EMPTYING:
                parts = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else ())]
                reads = (n for p in parts for n in walk(p))
                if any(reads_gradient(n) or (isinstance(n, ast.Name) and "grad" in n.id) for n in reads):
                    yield call
            elif name != "zero_grad" and not self._calls.targets(call):
                yield call


def reads_gradient(node: ast.AST) -> bool:
    """`parameter.grad`."""
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _stores(tree: Tree) -> Iterable[tuple[ast.AST, ast.expr | None]]:
    """Where a gradient is set, and to what: `p.grad = …` and `setattr(p, "grad", …)`."""
    yield from ((d.node, d.value) for d in tree.attributes.get("grad", ()))
    for call in tree.called("setattr"):
        if len(call.args) == 3 and literal(call.args[1]) == "grad":
            yield call, call.args[2]


def _is_empty(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and "zeros" in name_of(value))
