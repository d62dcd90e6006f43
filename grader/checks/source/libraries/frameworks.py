"""What a framework was given and asked to do in a script: loaders, models and losses that go through its object.

Only where the framework's object is built in the submission and its words are known (`framework_words`); otherwise
nothing is claimed.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import ALL, TRAINER, Words, handed_on, speaker
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import name_of
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import Training
from grader.checks.source.values.sources import Values


class Frameworks:
    """Frameworks over all files."""

    def __init__(
        self,
        trees: tuple[Tree, ...],
        names: Names,
        calls: Calls,
        values: Values,
        training: Training,
        owners: LoopOwners,
    ) -> None:
        self._trees, self._names, self._calls, self._owners = trees, names, calls, owners
        self._values, self._training = values, training

    @cached_property
    def words(self) -> Words | None:
        """The one framework whose loop is the script's own and that it builds an object of."""
        if not self._training.framework or self._owners.built:
            return None
        spoken = [w for w in ALL if self._calls.named(*w.makers)]
        return spoken[0] if len(spoken) == 1 else None

    @property
    def opaque(self) -> bool:
        """Some framework is in use, and what it does with the script's parts can't be told from the text."""
        return self._training.framework and self.words is None

    @cached_property
    def alone(self) -> bool:
        """Whether the text itself asks the framework for one device: then there is one process."""
        built = [*self._owners.built, *self._calls.named(*(m for words in ALL for m in words.makers))]
        return bool(built) and all(
            self._values.constant(self._calls.argument(b, "devices")) in (1, "1")
            and self._calls.argument(b, "num_nodes") is None
            for b in built
        )

    @cached_property
    def objects(self) -> list[ast.Call]:
        """Where the framework's object is built."""
        return self._calls.named(*self.words.makers) if self.words else list(self._owners.built)

    @property
    def spoken(self) -> Words | None:
        """The one framework that the script builds an object of, whoever owns the loop."""
        return self.words or self._owners.words

    def in_its_words(self, advice: str) -> str:
        """Advice for DistributedDataParallel as the framework's readers write it: `accelerator.is_main_process`."""
        if self.spoken is None:
            return advice
        for plain, own in self.spoken.instead:
            advice = re.sub(rf"(?<![\w.]){re.escape(plain)}", f"{self.spoken.called}{own}", advice)
        return advice

    def calls(self, *methods: str) -> list[ast.Call]:
        """Calls of these methods of the framework's object."""
        if self.words is None:
            return []
        found = [c for tree in self._trees for c in tree.called(*methods)]
        return [
            c
            for c in found
            if isinstance(c.func, ast.Attribute) and speaker(self._names, c.func.value) is self.words
        ]

    @cached_property
    def prepared(self) -> dict[ast.AST, ast.Call]:
        """What was handed to the framework, by where it was made, with the call that took it."""
        found: dict[ast.AST, ast.Call] = {}
        for call in self.calls(*self.words.prepares) if self.words else ():
            for given in handed_on(self._names, call):
                found.update(dict.fromkeys(self._values.origins(given), call))
        return found

    @cached_property
    def models(self) -> list[tuple[ast.Call, ast.expr]]:
        """Calls that hand the framework models to wrap, each with what may be one."""
        if self.words is not None:
            calls = self.calls(*self.words.models)
            return [(call, given) for call in calls for given in handed_on(self._names, call)]
        trainers = [call for call, words in self._owners.built.items() if words is TRAINER]
        asked = [(c, self._calls.argument(c, "model") or next(iter(c.args), None)) for c in trainers]
        return [(call, given) for call, given in asked if given is not None]

    @cached_property
    def all_told(self) -> bool:
        """Whether everything that the framework gets is in the text: nobody else has its object or hands it parts."""
        if self.words is None or self._names.foreign or self.calls("split_between_processes"):
            return False
        for call in self.calls(*self.words.prepares):
            given = handed_on(self._names, call)
            if not given or (call.keywords and call.func.attr == "prepare"):  # type: ignore[attr-defined]
                return False
            if any(not isinstance(o, ast.Call) for g in given for o in self._values.origins(g)):
                return False
        handed = (c for t in self._trees for c in t.calls if not self._calls.targets(c))
        return not any(speaker(self._names, a) is not None for c in handed for a in arguments_of(c))

    def divides(self, loader: ast.Call) -> bool:
        """Whether the framework divides what a loader gives among the ranks."""
        taken = self.prepared.get(loader)
        if taken is None or self.words is None or self.thrown_away(taken):
            return False
        kept = self._calls.argument(taken, "use_distributed_sampler")
        return name_of(taken) in self.words.loaders and kept is None

    def thrown_away(self, call: ast.Call) -> bool:
        """Whether what it gives back is not kept."""
        return isinstance(self._names.tree(call).parent.get(call), ast.Expr)

    def holds_model(self, node: ast.expr) -> ast.Call | None:
        """The call that wrapped a model, where an expression holds what that gave back and nothing was taken out."""
        if self.words is None or not self.prepared:
            return None
        taken = [self.prepared.get(o) for o in self._values.origins(node)]
        wrap = taken[0] if taken and all(taken) else None
        if wrap is None or name_of(wrap) not in self.words.models:
            return None
        # What was made is the same before and after; what came of the call is held only behind it.
        return wrap if wrap in self._values.closure(node) else None

    def trained_outside(self, forward: ast.Call) -> str:
        """Why a network that a forward pass goes through is none that the framework wrapped; "" where it may be."""
        if not self.prepared or not self.all_told or not isinstance(forward.func, ast.Name | ast.Attribute):
            return ""
        origins = self._values.origins(forward.func)
        if not origins or any(not isinstance(o, ast.Call) for o in origins):
            return ""
        taken = [self.prepared[o] for o in origins if o in self.prepared]
        if not taken:
            return "never handed to it"
        return "thrown away by the call that wraps it" if all(map(self.thrown_away, taken)) else ""

    def bypassed(self, backward: ast.Call) -> bool:
        """Whether a backward pass goes through a wrapped model, and not through the framework."""
        func = backward.func
        if self.words is None or not isinstance(func, ast.Attribute) or func.attr != "backward":
            return False
        if speaker(self._names, func.value) is not None:
            return False
        made = [n for n in self._values.closure(func.value) if isinstance(n, ast.Call)]
        if any(name_of(n) in ("scale", "unscale") for n in made):
            return False
        return any(isinstance(n.func, ast.Name | ast.Attribute) and self.holds_model(n.func) for n in made)

    def setting(self, name: str) -> object:
        """What the one object of the framework is built with, where that is written out; `UNKNOWN` otherwise."""
        given = [self._calls.argument(c, name) for c in self.objects]
        return self._values.constant(given[0]) if len(given) == 1 else self._values.constant(None)

    def scales_loss(self) -> bool:
        """Whether the text chooses float16 with a loss that the framework scales."""
        return self.words is not None and self.setting(self.words.half[0]) in self.words.half[1]
