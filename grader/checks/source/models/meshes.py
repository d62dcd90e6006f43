"""Models that the text lets several ranks hold in parts: tensor, pipeline or context parallel, by a library or by hand.

Ranks that share one model need the same batches: what divides data among all ranks is wrong there, and what gives each
of them everything may be right. Reads which calls are given a mesh; what the ranks really drew is the run's matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_expressions import Ranks, Strength
from grader.checks.source.syntax.nodes import UNKNOWN, name_of, walk
from grader.checks.source.training_loops import DDP, OTHER_WRAPPERS, SAMPLER, Training
from grader.checks.source.values.sources import Values

_DIST = "torch.distributed"
_IN_PARTS = (
    f"{_DIST}.tensor.parallel.parallelize_module",
    f"{_DIST}.pipelining.PipelineStage",
    f"{_DIST}.pipelining.pipeline",
    f"{_DIST}.tensor.experimental.context_parallel",
    f"{_DIST}.tensor.distribute_module",
)
_EXCHANGES = (
    "all_reduce",
    "reduce_scatter_tensor",
    "all_gather_into_tensor",
    "all_gather",
    "all_to_all_single",
    "all_to_all",
)
_SENDS = ("send", "isend", "batch_isend_irecv")
_OWN_LAYERS = ("torch.nn.Module", "torch.autograd.Function")


class Meshes:
    """What is divided among ranks besides the data."""

    def __init__(self, names: Names, calls: Calls, values: Values, ranks: Ranks, training: Training) -> None:
        self._names, self._calls, self._values, self._ranks = names, calls, values, ranks
        self._training = training
        self._by_hand: bool | None = None

    @property
    def in_parts(self) -> ast.Call | None:
        """The first call by which several ranks hold parts of one model; None where the text has none."""
        given = (c for c in self._calls.named(*_IN_PARTS) if not self._experts(c))
        split = (c for c in self._calls.named(f"{_DIST}.tensor.distribute_tensor") if self._of_parameter(c))
        return next(given, None) or next(split, None)

    @property
    def by_hand(self) -> bool:
        """Whether layers of the script's own exchange values, or gradients that another rank sent go backward."""
        if self._by_hand is None:
            self._by_hand = self._layers_exchange() or self._stages_send()
        return self._by_hand

    @property
    def may_share_batches(self) -> bool:
        """Whether equal batches on all ranks may be right: all of them may hold one model together."""
        if self.by_hand:
            return True
        return self.in_parts is not None and not self._data_parallel()

    def over_all_ranks(self) -> Iterator[ast.Call]:
        """Samplers of training loaders that divide among all ranks, whatever mesh these form."""
        for loader in self._training.loaders():
            if not self._training.roles(loader).trains:
                continue
            for sampler in self._training.samplers(loader):
                if isinstance(sampler, ast.Call) and self._names.qualified(sampler.func) == SAMPLER:
                    replicas, rank = (
                        self._calls.argument(sampler, name) for name in ("num_replicas", "rank")
                    )
                    if self._whole_world(replicas) and self._global(rank):
                        yield sampler

    def _whole_world(self, node: ast.expr | None) -> bool:
        if node is None:
            return True
        if node is UNKNOWN:
            return False
        parts = [p for o in self._values.origins(node) for p in walk(o)]
        worked_out = any(isinstance(p, ast.BinOp) for p in parts)
        asked = [p for p in parts if isinstance(p, ast.Call) and name_of(p) == "get_world_size"]
        of_a_group = any(c.args or c.keywords for c in asked)
        return self._ranks.world(node) is Strength.SURE and not worked_out and not of_a_group

    def _global(self, node: ast.expr | None) -> bool:
        return node is None or (node is not UNKNOWN and self._ranks.kind(node) == "global")

    def _experts(self, call: ast.Call) -> bool:
        """Experts lie on different ranks, but each rank brings samples of its own."""
        return any("expert" in name_of(n).lower() for n in walk(call) if isinstance(n, ast.expr))

    def _of_parameter(self, call: ast.Call) -> bool:
        above = self._names.tree(call).parent.get(call)
        return isinstance(above, ast.Call) and name_of(above) in ("Parameter", "register_parameter")

    def _data_parallel(self) -> bool:
        """Whether a wrapper is given a mesh's dimension, or a group, of its own: other ranks hold a copy."""
        for call in self._calls.named(DDP, *OTHER_WRAPPERS):
            given = [self._calls.argument(call, n) for n in ("process_group", "device_mesh", "mesh")]
            if any(g is not None for g in given):
                return True
        return False

    def _layers_exchange(self) -> bool:
        for tree in self._training.trees:
            for call in tree.called(*_EXCHANGES):
                function = tree.function(call)
                owner = self._calls.class_of.get(function) if function is not None else None
                if owner is None or getattr(function, "name", "") not in ("forward", "backward", "__call__"):
                    continue
                if any(self._names.qualified(base) in _OWN_LAYERS for base in owner.bases):
                    return True
        return False

    def _stages_send(self) -> bool:
        sends = any(tree.called(*_SENDS) for tree in self._training.trees)
        return sends and any(
            (c.args or any(k.arg == "gradient" for k in c.keywords))
            and isinstance(c.func, ast.Attribute)
            and self._names.qualified(c.func) is None
            for c in self._training.backwards
        )
