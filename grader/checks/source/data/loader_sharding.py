"""Whether a loader's data are divided among ranks in some way that the text shows.

Asks for the act (an index, a step, a range, a file or a sampler that depends on the rank), not for one class. Where
data come from code that was not handed in, the answer is "perhaps".
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.frameworks import Frameworks
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_expressions import Ranks
from grader.checks.source.syntax.nodes import UNKNOWN, walk
from grader.checks.source.training_loops import SAMPLER, Training
from grader.checks.source.values.sources import Values

_WHOLE_SET_SAMPLERS = {
    f"torch.utils.data.{n}"
    for n in ("RandomSampler", "SequentialSampler", "WeightedRandomSampler", "SubsetRandomSampler")
}
_DIVIDING_CALLS = {"range", "itertools.islice", "torch.arange", "numpy.arange", "slice"}
_DIVIDING_METHODS = {"shard", "split_by_node", "split_dataset_by_node", "sharding_filter", "narrow"}
_FILLING = (
    "broadcast",
    "broadcast_object_list",
    "recv",
    "irecv",
    "recv_object_list",
    "scatter",
    "scatter_object_list",
)
_RANK_KEYWORDS = {
    "rank",
    "num_replicas",
    "num_shards",
    "shard_id",
    "world_size",
    "shard",
    "replica_id",
    "dp_rank",
}


_RANDOM_PICKS = {
    *(f"torch.{name}" for name in ("rand", "randn", "randint", "multinomial", "bernoulli")),
    *(f"numpy.random.{name}" for name in ("rand", "randn", "randint", "choice", "random")),
    *(f"random.{name}" for name in ("choices", "sample", "choice", "randint", "randrange", "random")),
}
"""Draws of some samples, or of some more than once: a permutation holds each of them once."""


class Shared(Enum):
    """What the text says about a loader's data."""

    NO = "no"
    YES = "yes"
    UNKNOWN = "unknown"


class Sharding:
    """Division of data over all files."""

    def __init__(
        self,
        names: Names,
        calls: Calls,
        values: Values,
        ranks: Ranks,
        training: Training,
        frameworks: Frameworks,
    ) -> None:
        self._names, self._calls, self._values, self._ranks = names, calls, values, ranks
        self._training, self._frameworks = training, frameworks
        self._known: dict[ast.Call, Shared] = {}
        self._received = {
            a.id
            for tree in training.trees
            for call in tree.called(*_FILLING)
            for a in call.args[:1]
            if isinstance(a, ast.Name)
        }

    def of(self, loader: ast.Call) -> Shared:
        """How a `DataLoader(…)` call's data are divided."""
        if loader not in self._known:
            self._known[loader] = self._judge(loader)
        return self._known[loader]

    def _judge(self, loader: ast.Call) -> Shared:
        if self._frameworks.divides(loader):
            return Shared.YES
        answers = [self._sampler(o) for o in self._training.samplers(loader)]
        dataset = self._calls.argument(loader, "dataset")
        if dataset is None or dataset is UNKNOWN:
            answers.append(Shared.UNKNOWN)
        else:
            answers.append(self._data(dataset))
        if any(self.by_rank(n) for draw in self._training.roles(loader).draws for n in walk(draw.loop)):
            return Shared.YES
        for answer in (Shared.YES, Shared.UNKNOWN):
            if answer in answers:
                return answer
        return Shared.NO

    def _sampler(self, origin: ast.AST) -> Shared:
        if isinstance(origin, ast.Call):
            name = self._names.qualified(origin.func)
            if name == SAMPLER:
                return Shared.YES
            if name in _WHOLE_SET_SAMPLERS:
                # Drawing with replacement, a share of the samples on each rank, is a division of its own kind.
                if any(k.arg in ("replacement", "num_samples", "generator") for k in origin.keywords):
                    return Shared.UNKNOWN
                return self._data(origin)
            owner = self._calls.built_class(origin)
            if owner is not None:
                return Shared.YES if self._class_knows_ranks(origin, owner) else Shared.NO
        return Shared.YES if any(self.by_rank(n) for n in self._values.closure(origin)) else Shared.UNKNOWN

    def _data(self, dataset: ast.expr) -> Shared:
        unknown = False
        # What another method has put into `self.train` is an origin of it, and no part of what this one does.
        origins = self._values.origins(dataset)
        for node in dict.fromkeys(n for one in (dataset, *origins) for n in self._values.closure(one)):
            # What another rank sends may be this rank's share.
            unknown = unknown or (isinstance(node, ast.Name) and node.id in self._received)
            if (
                self._divides(node)
                or self.by_rank(node)
                or (isinstance(node, ast.JoinedStr) and self._ranks.shows_rank(node))
            ):
                return Shared.YES
            if isinstance(node, ast.Call):
                owner = self._calls.built_class(node)
                if owner is not None:
                    if self._class_knows_ranks(node, owner):
                        return Shared.YES
                    unknown = unknown or (self.is_iterable(owner) and not self._same_everywhere(node, owner))
                name = self._names.qualified(node.func) or ""
                # Drawn at random, samples are other ones on each rank, unless they all seed alike.
                unknown = unknown or name in _RANDOM_PICKS
                unknown = unknown or any(name == f or name.startswith(f + ".") for f in self._names.foreign)
        for origin in origins:
            unknown = unknown or isinstance(origin, ast.arg | ast.For)
        return Shared.UNKNOWN if unknown else Shared.NO

    def _divides(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._names.qualified(node.func) == SAMPLER

    def by_rank(self, node: ast.AST) -> bool:
        """Whether a node picks a part by rank: `x[rank::n]`, `range(rank, …)`, `i % n == rank`, `.shard(n, rank)`."""
        if isinstance(node, ast.Subscript):
            return any(self._ranks.rank(p) for p in _parts(node.slice))
        if isinstance(node, ast.Compare):
            sides: list[ast.expr] = [node.left, *node.comparators]
            modulo = any(isinstance(s, ast.BinOp) and isinstance(s.op, ast.Mod) for s in sides)
            return modulo and any(self._ranks.rank(s) or self._ranks.world(s) for s in sides)
        if isinstance(node, ast.Call):
            name = self._names.qualified(node.func)
            last = node.func.attr if isinstance(node.func, ast.Attribute) else (name or "").rpartition(".")[2]
            if last in _DIVIDING_METHODS:
                return True
            if name in _DIVIDING_CALLS:
                return any(self._ranks.rank(p) for a in node.args for p in _parts(a))
            return any(k.arg in _RANK_KEYWORDS and self._ranks.rank(k.value) for k in node.keywords)
        return False

    def _class_knows_ranks(self, call: ast.Call, owner: ast.ClassDef) -> bool:
        given = arguments_of(call)
        if any(self._ranks.rank(a) or self._ranks.world(a) for a in given):
            return True
        if any(self._divides(node) for a in given for node in self._values.closure(a)):
            return True  # what a sampler deals out to this rank
        tree = self._names.tree(owner)
        for family in (owner, *self._calls.bases(owner)):
            for node in walk(family):
                named = isinstance(node, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
                if named and (self._ranks.rank(node) or self._ranks.world(node)):
                    return True
        names = {self._names.qualified(b) for b in owner.bases}
        return SAMPLER in names and tree is not None

    def is_iterable(self, owner: ast.ClassDef) -> bool:
        """Whether a class of the submission is a stream: samplers and indices have no say in what it yields."""
        bases = {self._names.qualified(b) or "" for b in owner.bases}
        return any(b.endswith("IterableDataset") for b in bases)

    def iterable(self, loader: ast.Call) -> ast.ClassDef | None:
        """The stream that a loader reads from, where it is a class of the submission."""
        dataset = self._calls.argument(loader, "dataset")
        for origin in self._values.origins(dataset) if dataset is not None else ():
            owner = self._calls.built_class(origin)
            if owner is not None and self.is_iterable(owner):
                return owner
        return None

    def draws(self, owner: ast.ClassDef) -> bool:
        """Whether a class may draw what it yields at random, or leaves it to code that nobody can see."""
        tree = self._names.tree(owner)
        for call in tree.calls_within(owner):
            name = self._names.qualified(call.func) or ""
            last = name.rpartition(".")[2] or getattr(call.func, "attr", "")
            if last == "manual_seed" or any(k.arg == "generator" for k in call.keywords):
                continue  # a generator of its own: alike wherever no rank is known
            if any(
                word in last.lower()
                for word in ("rand", "shuffle", "sample", "choice", "permut", "rng", "seed")
            ):
                return True
            if any(name == f or name.startswith(f + ".") for f in self._names.foreign):
                return True
        return False

    def _same_everywhere(self, call: ast.Call, owner: ast.ClassDef) -> bool:
        """A stream that yields the same on every rank: it is told no rank, asks for none and draws nothing."""
        given = arguments_of(call)
        if any(self._ranks.shows_rank(a) for a in given):
            return False
        written_out = any(self._calls.class_of.get(f) is owner for f in self._calls.methods("__iter__"))
        return written_out and not self.draws(owner)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    for part in walk(node):
        if isinstance(part, ast.expr):
            yield part
