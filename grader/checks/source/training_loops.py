"""The nouns of a training script: which loops train, which validate, what each loader feeds, what is wrapped.

A loop trains when `backward` runs inside it; names and data set arguments are asked only where one loop serves both. It
knows nothing of ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.classes_as_values import called_by_value
from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.ways import leading_to, led_to
from grader.checks.source.data.loader_purpose import LoaderPurpose
from grader.checks.source.libraries.framework_words import is_framework
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, WITHS, Loop, loop_above, start, steps_up
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

DATA_LOADER = "torch.utils.data.DataLoader"
SAMPLER = "torch.utils.data.DistributedSampler"
DDP = "torch.nn.parallel.DistributedDataParallel"
FULLY_SHARD = ("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
SHARDING = ("torch.distributed.fsdp.FullyShardedDataParallel", *FULLY_SHARD)
OTHER_WRAPPERS = (
    *SHARDING, "torch.distributed._composable.replicate", "apex.parallel.DistributedDataParallel",
)  # fmt: skip
_NO_GRAD = {"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled"}


@dataclass(frozen=True, slots=True)
class Draw:
    """A loop that takes batches from loaders.

    Attributes:
        loop, loaders: the loop and the `DataLoader(…)` calls it may draw from.
        trains: it runs `backward`. evaluates: gradients are off, or the model is in evaluation mode.
        iterates: it walks over the loader itself, one pass per run; False where it asks for the `next` batch.
    """

    loop: Loop
    loaders: tuple[ast.Call, ...]
    trains: bool
    evaluates: bool
    iterates: bool


@dataclass(slots=True)
class Roles:
    """What a loader's batches are used for."""

    draws: list[Draw] = field(default_factory=list)
    trains: bool = False
    evaluates: bool = False


class Training:
    """Loops, loaders and wrappers over all files."""

    def __init__(
        self, trees: tuple[Tree, ...], names: Names, calls: Calls, values: Values, owners: LoopOwners
    ) -> None:
        self.trees = trees
        self._trees, self._names, self._calls, self._values = trees, names, calls, values
        backwards = [
            c
            for tree in trees
            for c in tree.called("backward", "manual_backward")
            if isinstance(c.func, ast.Attribute)
        ]
        self.backwards = tuple(backwards)
        self._backwards = frozenset(backwards)
        self._functions = leading_to(self._names, self._calls, backwards)
        self.wraps = (*calls.named(DDP), *called_by_value(trees, names, calls, values, DDP))
        self._owners = owners
        self.framework = bool(owners.built) or any(is_framework(i) for tree in trees for i in tree.imports)
        """A library that wraps, shards and synchronises by itself is in use."""
        self.intent = LoaderPurpose(names, calls, values)
        self._draws: tuple[Draw, ...] | None = None
        self._roles: dict[ast.Call, Roles] | None = None
        self._off: dict[ast.AST, bool] = {}
        self._samplers: dict[ast.Call, tuple[ast.AST, ...]] = {}

    @property
    def trains(self) -> bool:
        """The script has a training step of its own, or a framework that owns the loop."""
        return bool(self.backwards or self._owners.built)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """All loops over loaders, in the order of the text."""
        if self._draws is None:
            self._draws = tuple(self._find_draws())
        return self._draws

    def roles(self, loader: ast.Call) -> Roles:
        """What a loader is used for."""
        if self._roles is None:
            self._roles = self._find_roles()
        return self._roles.get(loader, Roles())

    def loaders(self) -> list[ast.Call]:
        """All `DataLoader(…)` calls."""
        return self._calls.named(DATA_LOADER)

    def samplers(self, loader: ast.Call) -> tuple[ast.AST, ...]:
        """Origins of what a loader samples with, batch samplers looked into; empty where nothing is given."""
        if loader not in self._samplers:
            self._samplers[loader] = self._find_samplers(loader)
        return self._samplers[loader]

    def _find_samplers(self, loader: ast.Call) -> tuple[ast.AST, ...]:
        found: list[ast.AST] = []
        for name in ("sampler", "batch_sampler"):
            given = self._calls.argument(loader, name)
            for origin in self._values.origins(given) if given is not None else ():
                inner = None
                if (
                    isinstance(origin, ast.Call)
                    and self._names.qualified(origin.func) == "torch.utils.data.BatchSampler"
                ):
                    inner = self._calls.argument(origin, "sampler")
                found.extend(self._values.origins(inner) if inner is not None else (origin,))
        return tuple(o for o in found if not (isinstance(o, ast.Constant) and o.value is None))

    def distributed_samplers(self, loader: ast.Call) -> list[ast.Call]:
        """The `DistributedSampler(…)` calls that may reach a loader."""
        return [
            s
            for s in self.samplers(loader)
            if isinstance(s, ast.Call) and self._names.qualified(s.func) == SAMPLER
        ]

    def wrapped(self, node: ast.AST) -> bool:
        """Whether an expression may be a `DistributedDataParallel` module."""
        return any(o in self.wraps for o in self._values.origins(node))

    def runs_backward(self, node: ast.AST) -> bool:
        """Whether `backward` is called inside a node, directly or in a function called from there."""
        for call in self._names.tree(node).calls_within(node):
            if call in self._backwards or any(t in self._functions for t in self._calls.targets(call)):
                return True
        return False

    def repeated(self, node: ast.AST) -> bool:
        """Whether a loop around a node runs it more than once, counting loops around calls of its function."""
        function = self._names.tree(node).function(node)
        return self._in_loop(node) or (function is not None and function in self._run_in_loops)

    @cached_property
    def _run_in_loops(self) -> set[ast.AST]:
        calls = self._calls
        return led_to(self._names, calls, lambda f: any(self._in_loop(s.call) for s in calls.sites(f)))

    def gradients_off(self, node: ast.AST) -> bool:
        """Whether a node stands under `torch.no_grad()` or the like, by block or by decorator."""
        tree = self._names.tree(node)
        statement: ast.AST | None = tree.statement(node)
        passed: list[ast.AST] = []
        off = False
        while statement is not None and not off:
            if statement in self._off:
                off = self._off[statement]
                break
            passed.append(statement)
            off = self._switches_off(statement)
            statement = tree.parent.get(statement)
        self._off.update(dict.fromkeys(passed, off))
        return off

    def _switches_off(self, node: ast.AST) -> bool:
        contexts: list[ast.expr] = []
        if isinstance(node, WITHS):
            contexts = [i.context_expr for i in node.items]
        elif isinstance(node, FUNCTIONS):
            contexts = node.decorator_list
        named = (context.func if isinstance(context, ast.Call) else context for context in contexts)
        return any(self._names.qualified(n) in _NO_GRAD for n in named)

    def _in_loop(self, node: ast.AST) -> bool:
        tree = self._names.tree(node)
        around = steps_up(tree.parent, node, tree.function(node))
        return any(
            isinstance(a, LOOPS) and child in a.body and not self._single_pass(a) for child, a in around
        )

    def _single_pass(self, loop: Loop) -> bool:
        if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call):
            return False
        if self._names.qualified(loop.iter.func) != "range" or len(loop.iter.args) != 1:
            return False
        times = self._values.constant(loop.iter.args[0])
        return isinstance(times, int) and times <= 1

    def _find_draws(self) -> Iterable[Draw]:
        for tree in self._trees:
            found: dict[Loop, list[ast.Call]] = {}
            walked: set[Loop] = set()
            for loop in tree.loops:
                if not isinstance(loop, ast.While):
                    loaders = self._sources(loop.iter, 0)
                    if loaders:
                        walked.add(loop)
                        found.setdefault(loop, []).extend(loaders)
            for call in self._calls.named("next"):
                if self._names.tree(call) is tree and call.args:
                    around = loop_above(tree.parent, call, tree.function(call))
                    loaders = self._sources(call.args[0], 0) if around is not None else []
                    if around is not None and loaders:
                        found.setdefault(around, []).extend(loaders)
            for loop in sorted(found, key=start):
                trains = self.runs_backward(loop)
                evaluates = not trains and self._evaluates(tree, loop)
                yield Draw(loop, tuple(dict.fromkeys(found[loop])), trains, evaluates, loop in walked)

    def _evaluates(self, tree: Tree, loop: Loop) -> bool:
        if self.gradients_off(loop):
            return True
        function = tree.function(loop) or tree.root
        for inner in tree.calls_within(function):
            if self._names.qualified(inner.func) in _NO_GRAD and tree.inside(inner, loop):
                return True
            is_eval = isinstance(inner.func, ast.Attribute) and inner.func.attr == "eval" and not inner.args
            if is_eval and (start(inner) < start(loop) or tree.inside(inner, loop)):
                return True
        return False

    def _sources(self, node: ast.AST, depth: int) -> list[ast.Call]:
        """Loaders that an iterated expression takes its batches from, through `enumerate`, `tqdm`, own generators."""
        found: list[ast.Call] = []
        for origin in self._values.origins(node):
            if not isinstance(origin, ast.Call):
                continue
            name = self._names.qualified(origin.func)
            if name == DATA_LOADER:
                found.append(origin)
            elif depth < 4 and name not in ("len", "range", "open", "sorted"):
                for argument in arguments_of(origin):
                    if isinstance(
                        argument, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Starred
                    ):
                        found.extend(self._sources(argument, depth + 1))
        return found

    def _find_roles(self) -> dict[ast.Call, Roles]:
        roles: dict[ast.Call, Roles] = {}
        for draw in self.draws:
            for loader in draw.loaders:
                role = roles.setdefault(loader, Roles())
                role.draws.append(draw)
                meant = self.intent.of(loader)
                if draw.trains and (meant == "train" or (meant == "" and len(draw.loaders) == 1)):
                    role.trains = True
                elif (draw.trains and meant == "eval" and len(draw.loaders) > 1) or (
                    draw.evaluates and meant != "train"
                ):
                    role.evaluates = True
        return roles
