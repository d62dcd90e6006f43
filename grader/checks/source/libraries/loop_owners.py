"""Frameworks that own the training loop: where a script builds them, and what of its own they call on every rank.

Nothing in the text calls the hooks of a `LightningModule` or of a callback; the framework does, on each rank.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import LIGHTNING, OWNERS, TRAINER, Words
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, VARIABLES, Function, name_of
from grader.checks.source.syntax.tree import Tree

_LIGHTNING = ("lightning.", "pytorch_lightning.")
_MODULE_HOOKS = re.compile(r"on_\w+|\w+_step|setup|teardown|configure_\w+|\w+_dataloader|\w+_epoch_end")
"""Not `prepare_data`, which Lightning calls on one rank of each machine."""
_TRAINER_HOOKS = re.compile(
    r"compute_loss|training_step|prediction_step|evaluation_loop|evaluate|predict|log|create_\w+|get_\w+_dataloader"
)
_HANDED = ("compute_metrics", "preprocess_logits_for_metrics", "model_init", "compute_loss_func")
"""Arguments of transformers' `Trainer` that take a function which it calls on every rank."""


class LoopOwners:
    """Such frameworks over all files."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, calls: Calls) -> None:
        self._trees, self._names, self._calls = trees, names, calls

    @cached_property
    def imported(self) -> tuple[Words, ...]:
        """Those whose classes some file imports."""
        found = {i for tree in self._trees for i in tree.imports}
        # Most of transformers and of trl has nothing to do with a loop.
        return tuple(
            words
            for words in OWNERS
            if any(
                i.split(".")[0] in words.package
                and (words is LIGHTNING or i in words.package or "Trainer" in i)
                for i in found
            )
        )

    @cached_property
    def built(self) -> dict[ast.Call, Words]:
        """Where one of their objects is built, by their own class or by a class derived from it."""
        owners = self.imported
        own = {c for tree in self._trees for c in tree.classes if self._ancestors(c) & set(_all(owners))}
        found = {call: words for words in owners for call in self._calls.named(*words.makers)}
        for call in (c for tree in self._trees for c in tree.calls if own):
            kind = self._calls.built_class(call)
            if kind in own and kind is not None:
                found[call] = next(w for w in owners if self._ancestors(kind) & set(w.makers))
        return found

    @cached_property
    def words(self) -> Words | None:
        """The one such framework that the script builds an object of."""
        spoken = list(dict.fromkeys(w.name for w in self.built.values()))
        return next((w for w in self.built.values()), None) if len(spoken) == 1 else None

    def is_lightning_module(self, owner: ast.ClassDef | None) -> bool:
        """Whether a class is a `LightningModule`."""
        return owner is not None and any(
            a.endswith(".LightningModule") and a.startswith(_LIGHTNING) for a in self._ancestors(owner)
        )

    def calls_everywhere(self, function: Function) -> bool:
        """Whether the framework calls a function on every rank: a hook, or one that it was handed."""
        return self.main_test(function) != "" or self._handed(function)

    def main_test(self, node: ast.AST) -> str:
        """How a hook asks whether it runs on rank 0, at a node inside it; "" outside of hooks."""
        tree = self._names.tree(node)
        function = node if isinstance(node, FUNCTIONS) else tree.function(node)
        owner = self._calls.class_of.get(function) if function is not None else None
        if not self.built or owner is None or function is None:
            return ""
        ancestors = self._ancestors(owner)
        given = [a.arg for a in function.args.args]
        if ancestors & set(TRAINER.makers):
            return f"{given[0]}.{TRAINER.main}" if given and _TRAINER_HOOKS.fullmatch(function.name) else ""
        if not _MODULE_HOOKS.fullmatch(function.name) or not given:
            return ""
        kinds = {a.rpartition(".")[2] for a in ancestors if a.startswith((*_LIGHTNING, "transformers."))}
        if kinds & {"LightningModule", "LightningDataModule"}:
            return f"{given[0]}.trainer.{LIGHTNING.main}"
        if "TrainerCallback" in kinds and len(given) > 2:
            return f"{given[2]}.is_world_process_zero"
        return f"{given[1]}.{LIGHTNING.main}" if "Callback" in kinds and len(given) > 1 else ""

    def maker(self, call: ast.Call) -> set[str]:
        """Full names of the class that a call builds and of those that it derives from."""
        kind = self._calls.built_class(call)
        return self._ancestors(kind) if kind is not None else {self._names.qualified(call.func) or ""}

    def _handed(self, function: Function) -> bool:
        for call, words in self.built.items():
            for keyword in call.keywords if words is TRAINER else ():
                given = keyword.value if keyword.arg in _HANDED else None
                if isinstance(given, VARIABLES) and self._calls.definition(given) is function:
                    return True
        return False

    def _ancestors(self, owner: ast.ClassDef, depth: int = 5) -> set[str]:
        """Full names of the classes of libraries that a class derives from."""
        found = {self._names.qualified(b) or name_of(b) for b in owner.bases}
        for base in self._calls.bases(owner) if depth else ():
            found |= self._ancestors(base, depth - 1)
        return found


def _all(owners: tuple[Words, ...]) -> list[str]:
    return [maker for words in owners for maker in words.makers]
