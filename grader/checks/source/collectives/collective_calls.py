"""Calls in which every rank of the default group must take part, and where in the text they run.

Point-to-point calls and calls on a group of their own are left out: their members are the script's own business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.ways import circles
from grader.checks.source.libraries.library_collectives import library_calls
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.libraries.names import Names
from grader.checks.source.models.networks import Networks
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import DDP
from grader.checks.source.values.sources import Values

INIT = "torch.distributed.init_process_group"
_REDUCING = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "gather", "gather_object", "reduce",
    "reduce_scatter", "reduce_scatter_tensor",
)  # fmt: skip
_SPREADING = (
    "barrier", "broadcast", "broadcast_object_list", "monitored_barrier", "new_group", "scatter",
    "scatter_object_list",
)  # fmt: skip
REDUCING = tuple(f"torch.distributed.{n}" for n in _REDUCING)
"""Collectives that bring the ranks' values together."""
COMMON_REDUCING = ("all_reduce", "reduce", "all_gather", "gather", "all_gather_object", "gather_object")
"""Those of them that scripts write for numbers and for gradients alike."""
ALL = (*REDUCING, *(f"torch.distributed.{n}" for n in _SPREADING))

_IN_ORDER = 50
"""So many collectives of one function are told one by one: two branches that differ do so long before."""


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One collective.

    Attributes:
        name: short name, as the script's reader knows it (`all_reduce`). call: the call itself.
        via: the call written at the place that was asked about; equal to `call` unless a helper stands between.
    """

    name: str
    call: ast.Call
    via: ast.Call


class Collectives:
    """Collectives over all files."""

    def __init__(
        self,
        trees: tuple[Tree, ...],
        names: Names,
        calls: Calls,
        values: Values,
        modules: Networks,
        owners: LoopOwners,
    ) -> None:
        self._trees, self._modules, self._owners = trees, modules, owners
        self._names, self._calls, self._values = names, calls, values
        self._inside: dict[ast.AST, tuple[CollectiveCall, ...]] = {}
        self._direct: dict[ast.Call, str] | None = None
        self._running: dict[ast.Call, tuple[CollectiveCall, ...]] | None = None

    @property
    def direct(self) -> dict[ast.Call, str]:
        """All collective calls on the default group with their short names, wrapping a model among them."""
        if self._direct is None:
            self._direct = {}
            for dotted in (*ALL, INIT, DDP):
                for call in self._calls.named(dotted):
                    if not self._own_group(call):
                        self._direct[call] = dotted.rpartition(".")[2]
            self._direct |= library_calls(self._trees, self._calls, self._values, self._modules, self._owners)
        return self._direct

    @property
    def running(self) -> dict[ast.Call, tuple[CollectiveCall, ...]]:
        """All calls that run collectives, themselves or in a function that they call, with `of` each."""
        if self._running is None:
            direct = self.direct
            every = (call for tree in self._trees for call in tree.calls) if direct else ()
            likely = (call for call in every if call in direct or self._calls.targets(call))
            self._running = {call: found for call in likely if (found := self.of(call))}
        return self._running

    def inside(self, node: ast.AST) -> tuple[CollectiveCall, ...]:
        """Collectives that run inside a node, through the submission's own functions, in the order of the text."""
        if node not in self._inside:
            calls = self._names.tree(node).calls_within(node) if self.direct else ()
            self._inside[node] = tuple(one for call in calls for one in self.of(call))
        return self._inside[node]

    def of(self, call: ast.Call) -> tuple[CollectiveCall, ...]:
        """What one call runs: itself where it is a collective, or those inside the function it calls.

        Of a function that runs very many, the first ones, and one of each kind that comes later.
        """
        return self._of(call, self._run)

    @cached_property
    def _run(self) -> dict[ast.AST, tuple[CollectiveCall, ...]]:
        """What each function runs; of those that call each other in a circle, its own and then all of theirs."""
        known: dict[ast.AST, tuple[CollectiveCall, ...]] = {}
        for together in circles(self._calls.functions, self._callees) if self.direct else ():
            own = {
                function: _shortened(one for call in self._made_by(function) for one in self._of(call, known))
                for function in together
            }
            theirs = [one for function in together for one in own[function]] if len(own) > 1 else []
            known |= {
                f: _shortened(dict.fromkeys((*run, *theirs)) if theirs else run) for f, run in own.items()
            }
        return known

    def _of(
        self, call: ast.Call, known: Mapping[ast.AST, tuple[CollectiveCall, ...]]
    ) -> tuple[CollectiveCall, ...]:
        name = self.direct.get(call)
        if name is not None:
            return (CollectiveCall(name, call, call),)
        run = (one for target in self._calls.targets(call) for one in known.get(target, ()))
        return tuple(CollectiveCall(one.name, one.call, call) for one in run)

    def _callees(self, function: ast.AST) -> Iterator[ast.AST]:
        return (target for call in self._made_by(function) for target in self._calls.targets(call))

    def _made_by(self, function: ast.AST) -> Iterator[ast.Call]:
        tree = self._names.tree(function)
        return (call for statement in getattr(function, "body", ()) for call in tree.calls_within(statement))

    def _own_group(self, call: ast.Call) -> bool:
        given = [self._calls.argument(call, name) for name in ("group", "process_group")]
        for group in given:
            if group is None:
                continue
            origins = self._values.origins(group)
            world = all(
                (isinstance(o, ast.Constant) and o.value is None)
                or (self._names.qualified(o) or "").endswith("group.WORLD")
                for o in origins
            )
            if not world:
                return True
        return False


def _shortened(run: Iterable[CollectiveCall]) -> tuple[CollectiveCall, ...]:
    """The first ones, and of those that come later one by each name.

    What a chain of functions runs, each of which calls the next one twice, doubles with each of them.
    """
    found: list[CollectiveCall] = []
    names: set[str] = set()
    for one in run:
        if len(found) < _IN_ORDER or one.name not in names:
            names.add(one.name)
            found.append(one)
    return tuple(found)
