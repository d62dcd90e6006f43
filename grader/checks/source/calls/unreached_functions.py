"""Functions and methods of a submission that nobody calls, by no name and by no text: their lines never run.

A hook that overrides `before_epoch` where the loop asks its hooks for `before_train_epoch` raises nothing and does
nothing. Whatever may be a way in counts as one: a library's base class, a decorator that may keep the function, a name
that is put together, a module that was not handed in.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from grader.checks.source.calls import decorators
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import Function
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

_PLAIN_BASES = {"object", "abc.ABC", "typing.Protocol", "typing.Generic"}
_BY_LIBRARIES = {
    "close", "emit", "fileno", "filter", "flush", "format", "isatty", "load_state_dict", "read", "readline", "run",
    "state_dict", "write",
}  # fmt: skip
"""Methods that libraries call on whatever they are given."""
_ANY_NAME = ("eval", "exec", "globals", "locals", "vars")
_ANY_METHOD = ("methodcaller", "attrgetter", "__getattribute__", "Fire", "getmembers")
_NEAR = 0.6


class UnreachedFunctions:
    """Of all files of one submission."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, calls: Calls, values: Values) -> None:
        self._trees, self._names, self._calls, self._values = trees, names, calls, values
        self._known: dict[Function, Function | None] = {}

    def above(self, node: ast.AST) -> Function | None:
        """The function that keeps a line from running: its own, or one that all of its callers stand in."""
        tree = self._names.tree(node)
        function = tree.function(node)
        while function is not None:
            if function not in self._known:
                self._known[function] = None  # ends functions that call each other
                self._known[function] = self._keeping(function)
            if (found := self._known[function]) is not None:
                return found
            function = tree.function(function)
        return None

    def called_instead(self, function: Function) -> tuple[str, ast.AST] | None:
        """The nearest name that methods of its class are called by, with one of the places that do."""
        owner = self._calls.class_of.get(function)
        family = self._calls.family(owner) if owner is not None else ()
        methods = {f.name for f, c in self._calls.class_of.items() if c in family and isinstance(f, Function)}
        places = {
            name: place
            for name in sorted((methods | set(self._asked)) - {function.name})
            if not name.startswith("__") and (place := next(self._calling(name), None)) is not None
        }
        near = (
            difflib.get_close_matches(function.name, places, n=1, cutoff=_NEAR) if owner is not None else []
        )
        return (near[0], places[near[0]]) if near else None

    def _keeping(self, function: Function) -> Function | None:
        sites = self._calls.sites(function)
        if sites and not self._calls.references(function):
            kept = [self.above(site.call) for site in sites]
            return kept[0] if all(kept) else None
        return function if not sites and self._is_left(function) else None

    def _is_left(self, function: Function) -> bool:
        name, owner = function.name, self._calls.class_of.get(function)
        if (name.startswith("__") and name.endswith("__")) or name in _BY_LIBRARIES or self._may_be_any(name):
            return False
        if decorators.is_property(function) or any(
            decorators.may_call(self._names, d) for d in function.decorator_list
        ):
            return False
        if owner is not None and not all(map(self._is_own, self._calls.family(owner))):
            return False
        return next(self._calling(name), None) is None

    def _is_own(self, owner: ast.ClassDef) -> bool:
        """Whether a class inherits from nothing that could call its methods."""
        known = (
            isinstance(self._calls.definition(b), ast.ClassDef) or self._is_plain(b) for b in owner.bases
        )
        return all(known) and not owner.keywords and not owner.decorator_list

    def _is_plain(self, base: ast.expr) -> bool:
        named = base.value if isinstance(base, ast.Subscript) else base
        return self._names.qualified(named) in _PLAIN_BASES

    def _calling(self, name: str) -> Iterator[ast.AST]:
        """Places that read a name or write it as a text; what a method hands on to its base's is none of its own."""
        for tree in self._trees:
            for node in (*tree.attribute_loads.get(name, ()), *tree.loads.get(name, ())):
                inside = tree.function(node)
                if inside is None or inside.name != name:
                    yield node
            if name in tree.constants:
                yield from (text for text in tree.texts if text.value == name)

    def _may_be_any(self, name: str) -> bool:
        """Whether a name may be meant by one that is put together, or by a module that was not handed in."""
        if self._names.foreign or not self._starts:
            return True
        return any(asked is None or re.fullmatch(asked, name) for asked in self._patterns)

    @cached_property
    def _starts(self) -> bool:
        """Whether anything in these files runs one of their functions."""
        return any(
            self._calls.targets(call) and tree.function(call) is None
            for tree in self._trees
            for call in tree.calls
        )

    @cached_property
    def _fetched(self) -> list[ast.expr]:
        """Names by which attributes of the submission's own objects are fetched."""
        fetched = (c for t in self._trees for c in t.called("getattr") if len(c.args) > 1)
        return [
            c.args[1] for c in fetched if not (self._names.qualified(c.args[0]) or "").startswith("torch.")
        ]

    @cached_property
    def _asked(self) -> list[str]:
        """Texts by which attributes are fetched."""
        texts = (getattr(o, "value", None) for name in self._fetched for o in self._values.origins(name))
        return [text for text in texts if isinstance(text, str)]

    @cached_property
    def _patterns(self) -> list[str | None]:
        """What names that are put together look like; None for one that may be any."""
        for tree in self._trees:
            plain = any(isinstance(call.func, ast.Name) for call in tree.called(*_ANY_NAME))
            if plain or tree.called(*_ANY_METHOD) or "__dict__" in tree.attribute_loads:
                return [None]
        made = (origin for name in self._fetched for origin in self._values.origins(name))
        return [_pattern(origin) for origin in made if not isinstance(origin, ast.Constant)]


def _pattern(made: ast.AST) -> str | None:
    if not isinstance(made, ast.JoinedStr):
        return None
    return "".join(_literally(made.values))


def _literally(parts: Iterable[ast.expr]) -> Iterator[str]:
    for part in parts:
        yield re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"
