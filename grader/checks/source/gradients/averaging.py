"""Gradients that the script averages by hand: by which collectives, in which order, and whether a mean comes of it.

It prefers silence: a division that may be meant for the gradients counts as one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.unreached_functions import UnreachedFunctions
from grader.checks.source.gradients.updates import Updates, reads_gradient
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_expressions import Ranks
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, Loop, name_of, start, walk
from grader.checks.source.training_loops import Training
from grader.checks.source.values.lost_values import LostValues
from grader.checks.source.values.sources import Values

_REDUCERS = {
    "all_reduce", "all_reduce_coalesced", "all_gather", "all_gather_into_tensor", "allreduce", "allreduce_", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "Allreduce",
}  # fmt: skip
_WRAPPING = re.compile(
    r"ddp|data_?parallel|fsdp|fully_?shard|parallelize|deepspeed|horovod|zero_?redundancy|replicate|distribute_|pipeline"
    r"|prepare|wrap_model|model_wrapper|register_(post_accumulate_grad_)?hook|register_comm_hook|distributed\.rpc",
    re.IGNORECASE,
)
_AVERAGING = re.compile(r"^(?>\w*?(?:averag|sync|reduce))\w*(?:grad|param|weight|model)", re.IGNORECASE)
_HELD = {"grad", "data", "parameters", "named_parameters", "state_dict", "param_groups"}
_MAX_DEPTH = 4
_SCALING = ("div", "mul", "scale")


@dataclass(frozen=True, slots=True)
class Average:
    """One collective over gradients.

    Attributes:
        call: the collective. tensor: what it is given. mean: it divides by itself (`ReduceOp.AVG`).
    """

    call: ast.Call
    tensor: ast.expr
    mean: bool


@dataclass(frozen=True, slots=True)
class ReductionOrder:
    """Where one round of a loop averages, goes backward and steps.

    Attributes:
        around: the loop; where it leaves a whole round to one call, the function that is called.
        average, backwards, steps: the entries at its own level.
    """

    around: Loop | Function
    average: ast.AST
    backwards: tuple[ast.AST, ...]
    steps: tuple[ast.AST, ...]


class Averaging:
    """Hand-written averages over all files."""

    def __init__(
        self,
        names: Names,
        calls: Calls,
        values: Values,
        ranks: Ranks,
        training: Training,
        updates: Updates,
        lost: LostValues,
    ) -> None:
        self._trees, self._names, self._calls, self._values = names.trees, names, calls, values
        self._ranks, self._training, self._updates, self._lost = ranks, training, updates, lost
        self._unreached = UnreachedFunctions(names.trees, names, calls, values)
        self._averages: tuple[Average, ...] | None = None
        self._scaled: bool | None = None

    @property
    def all(self) -> tuple[Average, ...]:
        """All collectives over gradients that may run, in the order of the text."""
        return tuple(one for one in self._written if self._runs(one.call))

    @property
    def never_run(self) -> tuple[Average, ...]:
        """Those that stand in functions which nobody calls."""
        return tuple(one for one in self._written if not self._runs(one.call))

    @property
    def _written(self) -> tuple[Average, ...]:
        if self._averages is None:
            found = []
            for tree in self._trees:
                if "grad" in tree.attribute_loads or "grad" in tree.attributes:
                    for call in tree.called(*_REDUCERS):
                        found += [Average(call, t, self._is_mean(call)) for t in self._tensors(call)[:1]]
            self._averages = tuple(found)
        return self._averages

    def _runs(self, node: ast.AST) -> bool:
        return self._unreached.above(node) is None

    @property
    def scaled(self) -> bool:
        """Whether anything divides or multiplies gradients, or weighs the loss by what all ranks have."""
        if self._scaled is None:
            self._scaled = self.divided or self._weighs()
        return self._scaled

    @property
    def divided(self) -> bool:
        """Whether anything divides or multiplies gradients themselves."""
        return any(self._scales(n) and not self._lost.has(n) for t in self._trees for n in walk(t.root))

    @property
    def divided_in_vain(self) -> list[ast.AST]:
        """Quotients of gradients that nothing reads: the gradients stay as they were."""
        return [n for t in self._trees for n in walk(t.root) if self._scales(n) and self._lost.has(n)]

    @property
    def may_exchange(self) -> bool:
        """Whether anything may wrap a model, or send gradients or parameters to other ranks."""
        if self.all:
            return True
        if any(self._runs(call) for tree in self._trees for call in tree.called_like(_WRAPPING.search)):
            return True
        # `class Wrapped(DistributedDataParallel)`: making one wraps its model.
        if any(_WRAPPING.search(ast.unparse(b)) for t in self._trees for c in t.classes for b in c.bases):
            return True
        own = tuple(f"{tree.module}." for tree in self._trees)  # `train_ddp.loss` wraps nothing
        under = self._calls.under("")
        named = (name for name, call in under if not name.startswith(own) and self._runs(call))
        return any(map(_WRAPPING.search, named)) or self.sent_by_hand

    @property
    def sent_by_hand(self) -> bool:
        """Whether anything but a wrapper may send gradients or parameters to other ranks."""
        if self.all or any(self._runs(c) for t in self._trees for c in t.called_like(_AVERAGING.search)):
            return True
        for name, call in self._calls.under("torch.distributed."):
            if name.endswith("init_process_group") or "checkpoint" in name or _WRAPPING.search(name):
                continue
            if not self._runs(call):
                continue
            parts = arguments_of(call)
            read = (n for p in parts for n in self._values.closure(p))
            if any(isinstance(n, ast.Attribute) and n.attr in _HELD for n in read):
                return True
        return False

    def order(self, average: Average) -> ReductionOrder | None:
        """The round that an average belongs to; None where no loop around it goes backward and steps."""
        for loop in self._updates.rounds(average.call, self._training.backwards, self._updates.steps):
            found = self._order_in(loop, average)
            for _ in range(_MAX_DEPTH):
                if found is None or found.backwards != (found.average,) or found.steps != (found.average,):
                    return found
                called = found.average
                done = self._calls.targets(called) if isinstance(called, ast.Call) else ()
                inner = (self._order_in(f, average) for f in done if isinstance(f, FUNCTIONS))
                found = next((o for o in inner if o is not None), None)
        return None

    def _order_in(self, around: Loop | Function, average: Average) -> ReductionOrder | None:
        entries = self._updates.entries(around, [average.call])
        backwards, steps = (
            tuple(sorted(self._updates.entries(around, nodes), key=start))
            for nodes in (self._training.backwards, self._updates.steps)
        )
        return ReductionOrder(around, entries[0], backwards, steps) if entries else None

    def owners(self, average: Average) -> list[ast.expr]:
        """Models whose parameters an average goes over: `model` of `for p in model.parameters()`."""
        return [
            n.func.value
            for n in self._values.closure(average.tensor)
            if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in ("parameters", "named_parameters")
        ]

    def _tensors(self, call: ast.Call) -> list[ast.expr]:
        parts = arguments_of(call)
        found = [p for p in parts if self._updates.is_gradient(p)]
        if not found and "coalesced" in name_of(call):
            found = [p for p in parts if any(map(reads_gradient, self._values.closure(p)))]
        return found

    def _is_mean(self, call: ast.Call) -> bool:
        given = self._calls.argument(call, "op")
        parts = [given] if given is not None else arguments_of(call)
        for part in parts:
            for origin in self._values.origins(part):
                if name_of(origin) in ("AVG", "PREMUL_SUM", "average") or (
                    isinstance(origin, ast.Constant) and str(origin.value).lower() == "avg"
                ):
                    return True
        return any(k.arg == "average" for k in call.keywords)

    def _scales(self, node: ast.AST) -> bool:
        if isinstance(node, ast.AugAssign):
            return isinstance(node.op, ast.Div | ast.Mult) and self._gradient(node.target)
        if isinstance(node, ast.Assign):
            # What becomes a gradient, whatever it was before.
            return any(getattr(t, "attr", "") == "grad" for t in node.targets) and any(
                is_scaled(n) for n in walk(node.value)
            )
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Div | ast.Mult) and (
                self._gradient(node.left) or self._gradient(node.right)
            )
        if isinstance(node, ast.Call) and any(w in name_of(node) for w in _SCALING):
            parts = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else ())]
            return any(self._gradient(p) or self._from_gradients(p) for p in parts)
        return False

    def _gradient(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript):
            return self._from_gradients(node)
        return self._updates.is_gradient(node) or any(
            isinstance(node, ast.Name) and isinstance(a.tensor, ast.Name) and a.tensor.id == node.id
            for a in self.all
        )

    def _from_gradients(self, node: ast.AST) -> bool:
        # What a call makes of gradients may be a number, such as their norm.
        return not isinstance(node, ast.Call) and any(map(reads_gradient, self._values.closure(node)))

    def _weighs(self) -> bool:
        """The loss, or a learning rate, is multiplied or divided by a number of ranks or by what all ranks counted."""
        shared = {
            n.id
            for tree in self._trees
            for call in tree.called(*_REDUCERS)
            if not any(call is a.call for a in self.all)
            for n in walk(call)
            if isinstance(n, ast.Name)
        }
        parts: list[ast.AST] = []
        for backward in self._training.backwards:
            parts += [
                *backward.args,
                *([backward.func.value] if isinstance(backward.func, ast.Attribute) else ()),
            ]
        for optimizer in self._updates.optimizers:
            parts += [k.value for k in optimizer.keywords if k.arg == "lr"]
            parts += optimizer.args[1:2]
        for part in parts:
            for node in self._values.closure(part):
                if is_scaled(node):
                    for side in (node.left, node.right):
                        if self._ranks.world(side) or any(
                            isinstance(n, ast.Name) and n.id in shared for n in walk(side)
                        ):
                            return True
                if isinstance(node, ast.Constant) and node.value == "sum":
                    return True
        return False
