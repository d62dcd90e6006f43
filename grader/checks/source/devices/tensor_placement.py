"""Where tensors and modules are put: made on the CPU, moved to a device, or nobody can tell.

Follows the moves themselves (`.to`, `.cuda`), which `values.sources` looks through because they
leave a module the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.decorators import is_context_manager
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, UNKNOWN, VARIABLES, Function, name_of, part_of

MOVES = {"to", "cuda", "cpu", "xpu", "npu", "to_empty"}
_MADE = {
    f"torch.{n}"
    for n in (
        "tensor", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "FloatTensor", "LongTensor",
        "IntTensor", "DoubleTensor", "Tensor", "eye", "linspace",
    )
}  # fmt: skip
_DEFAULTS = (
    "torch.set_default_device", "torch.set_default_tensor_type", "torch.cuda.set_default_device",
)  # fmt: skip
_ITERATING = {"enumerate", "filter", "iter", "list", "map", "reversed", "tuple", "zip"}
_NUMBERS = {"float", "int", "len", "round", "bool", "time.time", "time.perf_counter"}
_MAX_DEPTH = 12


class MadeOn(Enum):
    """What a value is, as far as its making shows."""

    UNKNOWN = 0
    ON_CPU = 1
    """A tensor made without a device and never moved."""
    NUMBER = 2
    """A Python number, or a tuple."""


class Placement:
    """Making and moving over all files of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._known: dict[ast.AST, MadeOn] = {}
        self._moved: list[tuple[ast.Call, set[ast.AST]]] | None = None
        entered = [i.context_expr for t in script.trees for w in t.withs for i in w.items]
        entered += [a for c in script.called("enter_context") for a in c.args]
        self.default_chosen = bool(script.calls(*_DEFAULTS)) or any(
            # `with process_group() as device:` enters something that only gives one.
            self._is_device(e) and not any(is_context_manager(t) for t in self._run_by(e))
            for e in entered
        )

    def _run_by(self, node: ast.expr) -> Iterable[Function]:
        targets = self._script.graph.targets(node) if isinstance(node, ast.Call) else ()
        return (t for t in targets if isinstance(t, FUNCTIONS))

    def of(self, node: ast.AST, depth: int = 0) -> MadeOn:
        """What an expression is made as."""
        if node not in self._known:
            if depth > _MAX_DEPTH or node is UNKNOWN:
                return MadeOn.UNKNOWN
            self._known[node] = MadeOn.UNKNOWN
            self._known[node] = self._judge(node, depth + 1)
        return self._known[node]

    def moves(self, wrapped: ast.AST) -> Iterable[ast.Call]:
        """Calls that move a module, or the module inside its wrapper, to a device; changes of type alone are none."""
        if self._moved is None:
            self._moved = list(self._all_moved())
        return [call for call, moved in self._moved if wrapped in moved]

    def _all_moved(self) -> Iterable[tuple[ast.Call, set[ast.AST]]]:
        values = self._script.values
        for call in self._script.called(*MOVES):
            if isinstance(call.func, ast.Attribute) and self.is_move(call):
                owner = call.func.value
                if isinstance(owner, ast.Attribute) and owner.attr == "module":
                    owner = owner.value
                yield call, {*values.origins(owner, returns=False), *values.origins(owner)}

    def is_move(self, call: ast.Call) -> bool:
        """Whether `.to(…)` names a device, not a type or a memory format."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
            return isinstance(call.func, ast.Attribute) and call.func.attr in MOVES
        if any(k.arg == "device" for k in call.keywords):
            return True
        first = call.args[0] if call.args else None
        if first is None or (isinstance(first, ast.Attribute) and first.attr == "dtype"):
            return False
        name = self._script.names.qualified(first)
        return name is None or not name.startswith("torch.")

    def to_cpu(self, call: ast.Call) -> bool:
        """Whether a move goes to the CPU for certain."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu":
            return True
        return bool(call.args) and self._script.values.constant(call.args[0]) == "cpu"

    def placed(self, module: ast.expr) -> bool:
        """Whether a module is moved, or made on a device, before or where it is handed on."""
        script = self._script
        # A call that moves on its way (a helper's, a method's) hides behind the origins, which look through moves.
        sources: list[ast.AST] = [module, *script.values.origins(module, returns=False)]
        if isinstance(module, ast.Attribute):  # `self.model = DDP(self.model)`: what was stored before
            stores = (d.value for t in script.trees for d in t.attributes.get(module.attr, ()))
            sources += [v for v in stores if v is not None]
        for node in (n for s in sources for n in script.values.closure(s)):
            if isinstance(node, ast.Call) and (
                self._moves(node)
                or any(k.arg in ("device", "device_map") for k in node.keywords)
                or (not script.graph.targets(node) and self._is_given_device(node))
            ):
                return True
        made = set(script.values.origins(module))
        if any(made.intersection(self._moved_by(c)) for c in script.called(*MOVES) if self._moves(c)):
            return True
        # What nobody can look into, and has both the model and a device, may well move it.
        opaque = (c for c in script.all_calls() if not script.graph.targets(c) and self._is_given_device(c))
        return any(made.intersection(self._wholes(a)) for c in opaque for a in c.args)

    def _moved_by(self, call: ast.Call) -> Iterable[ast.AST]:
        assert isinstance(call.func, ast.Attribute)
        # Copies of parts on the CPU, as for a file, leave the model where it is.
        owner = call.func.value
        return self._script.values.origins(owner) if self.to_cpu(call) else self._wholes(owner)

    def _moves(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and call.func.attr in MOVES and self.is_move(call)

    def _is_given_device(self, call: ast.Call) -> bool:
        """Whether a call gets a device, or calls what was made with one: `methodcaller("to", device)(model)`."""
        if any(self._is_device(part) for part in arguments_of(call)):
            return True
        makers = (n for n in self._script.values.closure(call.func) if isinstance(n, ast.Call))
        return any(self._is_device(part) for maker in makers for part in maker.args)

    def _is_device(self, node: ast.expr) -> bool:
        values = self._script.values
        if any(
            isinstance(o, ast.Call) and self._script.names.qualified(o.func) == "torch.device"
            for o in values.origins(node)
        ):
            return True
        return isinstance(node, VARIABLES) and name_of(node) == "device"

    def _wholes(self, part: ast.AST) -> Iterable[ast.AST]:
        """What a value is, and what it is a part of: of `layer` in `for layer in model.children()`, `model`, too."""
        seen: set[ast.AST] = set()
        work = [part]
        while work:
            node = work.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            work += self._script.values.origins(node)
            if isinstance(node, ast.Attribute | ast.Subscript):
                work.append(node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                work.append(node.iter)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                work.append(node.func.value)
            elif isinstance(node, ast.Call) and name_of(node) in _ITERATING:
                work += node.args

    def _judge(self, node: ast.AST, depth: int) -> MadeOn:
        if isinstance(node, ast.Constant):
            return MadeOn.NUMBER if isinstance(node.value, int | float) else MadeOn.UNKNOWN
        if isinstance(node, ast.Tuple):
            return MadeOn.NUMBER
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.ListComp):
            return self.of(node.elt, depth)
        if isinstance(node, ast.List):
            kinds = {self.of(e, depth) for e in node.elts}
            return MadeOn.ON_CPU if kinds == {MadeOn.ON_CPU} else MadeOn.UNKNOWN
        if isinstance(node, ast.BinOp):
            kinds = {self.of(node.left, depth), self.of(node.right, depth)}
            if kinds == {MadeOn.NUMBER}:
                return MadeOn.NUMBER
            return MadeOn.ON_CPU if kinds == {MadeOn.ON_CPU} else MadeOn.UNKNOWN
        return self._call(node, depth) if isinstance(node, ast.Call) else MadeOn.UNKNOWN

    def _name(self, node: ast.Name, depth: int) -> MadeOn:
        found = self._script.scopes.reaching(node.id, node)
        kinds: set[MadeOn] = set()
        for definition in found:
            value = part_of(definition)
            if definition.kind not in ("assign", "augment") or value is None:
                return MadeOn.UNKNOWN
            made = self.of(value, depth)
            # Adding a tensor to a number makes a tensor; adding a number to a tensor leaves it where it is.
            if definition.kind == "assign" or made is MadeOn.UNKNOWN:
                kinds.add(made)
        if len(kinds) != 1:
            only_added = kinds == {MadeOn.ON_CPU, MadeOn.UNKNOWN} and all(
                d.kind == "augment" or self.of(v, depth) is MadeOn.ON_CPU
                for d in found
                if (v := part_of(d)) is not None
            )
            return MadeOn.ON_CPU if only_added else MadeOn.UNKNOWN
        return kinds.pop()

    def _call(self, node: ast.Call, depth: int) -> MadeOn:
        name = self._script.names.qualified(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in ("item", "tolist") and name is None:
            return MadeOn.NUMBER if method == "item" else MadeOn.UNKNOWN
        if name in _NUMBERS:
            return MadeOn.NUMBER
        if name in _MADE and not self.default_chosen:
            told = {k.arg for k in node.keywords}
            return MadeOn.UNKNOWN if told & {"device", None} else MadeOn.ON_CPU
        if method in ("float", "double", "long", "int", "clone", "detach", "mean", "sum") and isinstance(
            node.func, ast.Attribute
        ):
            made = self.of(node.func.value, depth)
            return made if made is MadeOn.ON_CPU else MadeOn.UNKNOWN
        if method == "cpu" and name is None:
            return MadeOn.ON_CPU
        return MadeOn.UNKNOWN
