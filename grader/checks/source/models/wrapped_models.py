"""Models inside DDP, under all their names, and what the text does to them between the wrap and the training.

`model`, `model.module` and the name the network had before it was wrapped are one thing here. Where the trail to a
wrap is lost, a place belongs to no wrapped model.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from functools import cached_property
from itertools import islice

from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.ways import led_to, led_to_only, ways_to
from grader.checks.source.gradients.updates import Updates
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_guards import Guard, Guards
from grader.checks.source.syntax.nodes import READS, end, name_of, start, walked_by
from grader.checks.source.training_loops import OTHER_WRAPPERS, Training
from grader.checks.source.values.sources import Values

_MAX_DEPTH = 7
_WALKS = ("parameters", "named_parameters", "modules", "named_modules", "children", "named_children")
_SENDING = (
    "broadcast",
    "sync_module",
    "sync_param",
    "scatter",
    "all_reduce",
    "average",
    "share_",
    "synchron",
)

_THE_SAME = {"eval", "train", "to", "cpu", "cuda", "half", "float", "double", "requires_grad_"}
"""Methods of a module that give it back."""
_MAX_LEADING = 16


class Replicas:
    """Wrapped models over all files."""

    def __init__(
        self, names: Names, calls: Calls, values: Values, guards: Guards, training: Training, updates: Updates
    ) -> None:
        self._names, self._calls, self._values, self._guards = names, calls, values, guards
        self._training, self._updates = training, updates
        self._trained: set[ast.AST] | None = None
        self._inner: dict[ast.Call, frozenset[ast.AST]] = {}

    def inner(self, wrap: ast.Call) -> frozenset[ast.AST]:
        """The calls that made the module which a wrapper was given."""
        if wrap not in self._inner:
            module = self._calls.argument(wrap, "module")
            origins = self._values.origins(module, returns=False) if module is not None else ()
            self._inner[wrap] = frozenset(o for o in origins if isinstance(o, ast.Call))
        return self._inner[wrap]

    def wrap_of(self, node: ast.AST) -> ast.Call | None:
        """The wrap whose model an expression is, or is a part of (`net.fc.weight`); None where that is not sure.

        Only expressions that stand after the wrap count: before it, a network may change as it likes.
        """
        part: ast.AST = node
        while True:
            if isinstance(part, ast.Attribute) and part.attr == "grad":
                return None  # a gradient is no part of the model
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
                wrap = self._direct(part)
                if wrap is not None:
                    return wrap
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                part = part.func.value
            elif isinstance(part, ast.Attribute | ast.Subscript):
                part = part.value
            else:
                return self._walked(part) if isinstance(part, ast.Name) else None

    def holds_whole(self, node: ast.expr) -> ast.Call | None:
        """The wrap whose whole model an expression is, `model`, `model.module` or `net`; None for parts of it."""
        inner = node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node
        if isinstance(inner, ast.Name | ast.Attribute):
            return self._direct(inner)
        return inner if isinstance(inner, ast.Call) and inner in self._training.wraps else None

    def made_of(self, wrap: ast.Call) -> Set[ast.AST]:
        """All that a wrapped model may be made of; of a copy, nothing but the copy."""
        module = self._calls.argument(wrap, "module")
        if module is None:
            return frozenset()
        made = self._values.origins(module, returns=False)
        if any(name_of(o) == "deepcopy" for o in made):
            return frozenset(made)
        return self._values.closure(module)

    @property
    def some_ignored(self) -> bool:
        """DDP is told to leave some parameters alone: the script knows which."""
        return any(
            "_set_params_and_buffers_to_ignore_for_model" in t.attribute_loads
            or "_ddp_params_and_buffers_to_ignore" in t.attributes
            for t in self._training.trees
        )

    def builds_model(self, origin: ast.AST) -> bool:
        """A call that plainly makes one network: of torch, of torchvision, a class of the submission, a copy."""
        if not isinstance(origin, ast.Call) or origin in self._training.wraps:
            return False
        name = self._names.qualified(origin.func) or ""
        if name_of(origin) == "deepcopy" or name.startswith(("torchvision.models.", "timm.create_model")):
            return True
        if name.startswith("torch.nn.") and name.count(".") == 2:
            last = name.rpartition(".")[2]
            return last[:1].isupper() and not last.endswith("Loss") and "Parameter" not in last
        owner = self._calls.built_class(origin)
        bases = [self._names.qualified(b) or "" for b in owner.bases] if owner is not None else []
        return any(b.startswith("torch.nn.") for b in bases)

    def after(self, wrap: ast.Call, node: ast.AST) -> bool:
        """Whether a node runs after a wrap: later in its function, or in one where a call that leads to it comes later.

        Calls that lead to the wrap count as the wrap: `Trainer()` that wraps in its `__init__`, before `trainer.fit()`.
        """
        tree, home = self._names.tree(node), self._names.tree(wrap)
        if tree is home and tree.function(node) is home.function(wrap):
            return start(node) > end(wrap)
        leading = islice(ways_to(self._names, self._calls, wrap), _MAX_LEADING)
        return any(self._called_after(one, node) for one in leading)

    def _called_after(self, wrap: ast.AST, node: ast.AST) -> bool:
        home, function = self._names.tree(wrap), self._names.tree(wrap).function(wrap)

        def elsewhere(place: ast.AST) -> bool:
            return self._names.tree(place) is not home or home.function(place) is not function

        ways = ways_to(self._names, self._calls, node, most=_MAX_DEPTH, goes_on=elsewhere)
        return any(not elsewhere(place) and start(place) > end(wrap) for place in ways)

    def whole(self, node: ast.AST) -> bool:
        """Whether a switch meets a whole model: `for p in model.parameters()`, `model.requires_grad_()`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            part: ast.AST | None = node.func.value
        else:
            part = getattr(getattr(node, "targets", [None])[0], "value", None)
            if not isinstance(self._names.tree(node).parent.get(node), ast.For):
                return False  # under a condition of its own
        if isinstance(part, ast.Name) and not self._training.wrapped(part):
            walked = [o for o in self._values.origins(part) if isinstance(o, ast.For | ast.comprehension)]
            return all(self._walks_whole(o) for o in walked)
        return _plain(part)

    def _walks_whole(self, loop: ast.For | ast.comprehension) -> bool:
        func = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        return isinstance(func, ast.Attribute) and _plain(func.value) and not getattr(loop, "ifs", None)

    def trained_after(self, node: ast.AST) -> bool:
        """Whether a backward pass can follow a node: later, or in the next round of a loop around both."""
        ways = ways_to(self._names, self._calls, node, most=_MAX_DEPTH)
        return any(self._trained_below(place) for place in ways)

    def wrapped_again(self, node: ast.AST) -> bool:
        """Whether a later wrap in the same function makes a fresh start, or that of the loop's next round."""
        tree = self._names.tree(node)
        function, loop = tree.function(node), next(iter(self._updates.loops_around(node)), None)
        entries = self._updates.entries(loop, self._training.backwards) if loop is not None else ()
        rest = any(start(entry) > start(node) for entry in entries)
        return any(
            tree.function(w) is function
            and (start(w) > start(node) or (loop is not None and not rest and tree.inside(w, loop)))
            for w in (*self._training.wraps, *self._calls.named(*OTHER_WRAPPERS))
            if self._names.tree(w) is tree
        )

    def trained(self, wrap: ast.Call) -> bool:
        """Whether the wrapper itself is called for some backward pass."""
        if self._trained is None:
            forwards = (c.func for b in self._training.backwards for c in self._updates.forwards(b))
            variables = (f for f in forwards if isinstance(f, READS))
            self._trained = {o for f in variables for o in self._values.origins(f)}
        return wrap in self._trained

    def on_some_ranks(self, node: ast.AST) -> Guard | None:
        """A condition that keeps a node from some ranks, at the node itself or at every call that leads to it."""
        while (guard := self._guards.partial(node)) is None:
            function = self._names.tree(node).function(node)
            if function is None or function not in self._run_on_some_ranks:
                return None
            node = self._calls.sites(function)[0].call
        return guard

    @cached_property
    def _run_on_some_ranks(self) -> set[ast.AST]:
        return led_to_only(self._names, self._calls, self._guards.partial)

    def sent_later(self, node: ast.AST) -> bool:
        """Whether something later in the function, or in a caller, may send values to the other ranks."""
        return self._sent_below(node) or self._names.tree(node).function(node) in self._run_before_sending

    @cached_property
    def _run_before_sending(self) -> Set[ast.AST | None]:
        calls = self._calls
        return led_to(self._names, calls, lambda f: any(self._sent_below(s.call) for s in calls.sites(f)))

    def _direct(self, node: ast.expr) -> ast.Call | None:
        origins = self._values.origins(node)
        own = self._values.origins(node, returns=False)
        for wrap in self._training.wraps:
            if wrap in origins:
                # Where a fallback without DDP reaches the name as well, the wrap is what counts among several ranks.
                return wrap
            if own and all(o in self.inner(wrap) for o in own) and self.after(wrap, node):
                return wrap
        return None

    def _walked(self, name: ast.Name) -> ast.Call | None:
        """`for p in model.parameters()`, `for n, m in net.named_modules()`."""
        for origin in self._values.origins(name):
            if isinstance(origin, ast.For | ast.comprehension):
                source = walked_by(origin, name.id) or origin.iter
                for call in (n for n in ast.walk(source) if isinstance(n, ast.Call)):
                    if isinstance(call.func, ast.Attribute) and call.func.attr in _WALKS:
                        return self.wrap_of(call.func.value)
        return None

    def _trained_below(self, node: ast.AST) -> bool:
        tree = self._names.tree(node)
        function = tree.function(node)
        loops = self._updates.loops_around(node)
        for entry in self._updates.entries(function or tree.root, self._training.backwards):
            if tree.function(entry) is function and (
                start(entry) > end(node) or any(tree.inside(entry, loop) for loop in loops)
            ):
                return True
        return False

    def _sent_below(self, node: ast.AST) -> bool:
        tree = self._names.tree(node)
        function = tree.function(node)
        for call in tree.calls_within(function or tree.root):
            sends = any(w in name_of(call).lower() for w in _SENDING)
            # Reduced metrics in a training loop behind it are no cure; a collective before the loop is.
            if start(call) > end(node) and sends and not self._in_training(call):
                return True
        return False

    def _in_training(self, node: ast.AST) -> bool:
        return any(
            self._updates.entries(loop, self._training.backwards) for loop in self._updates.loops_around(node)
        )


def _plain(owner: ast.AST | None) -> bool:
    """`model` or `model.module`, not a part of it; also what is left of it when it was told something."""
    while (
        isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr in _THE_SAME
    ):
        owner = owner.func.value
    return isinstance(owner, ast.Name) or (isinstance(owner, ast.Attribute) and owner.attr == "module")
