"""What an attribute of an object holds from the moment the object is made.

A field of a data class, a plain namespace or a loader is what the call that makes it gives; an attribute that
`__init__` alone sets is what `__init__` sets. Of everything else nothing is said: methods may have changed it since.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.attributes import Attributes
from grader.checks.source.syntax.nodes import Definition

_NAMESPACES = ("argparse.Namespace", "types.SimpleNamespace")
_LOADER = "torch.utils.data.DataLoader"
_LOADER_PARTS = ("batch_sampler", "dataset", "sampler")
_MAKING = ("__init__", "__post_init__")


class ObjectFields:
    """Objects over all files."""

    def __init__(self, names: Names, calls: Calls, attributes: Attributes) -> None:
        self._names, self._calls, self._attributes = names, calls, attributes

    def given(self, made: ast.AST, attribute: str) -> ast.expr | None:
        """What a call that makes an object gives for one of its fields."""
        if not isinstance(made, ast.Call):
            return None
        owner, name = self._calls.built_class(made), self._names.qualified(made.func)
        if name == _LOADER and attribute in _LOADER_PARTS:
            return self._calls.argument(made, attribute)
        if owner is None and name not in _NAMESPACES:
            return None
        named = keyword_value(made, attribute)
        if owner is None or self._calls.method(owner, "__init__") is not None:
            return named if owner is None else None
        fields = self._fields_of(owner)
        if named is None and attribute in fields and not any(isinstance(a, ast.Starred) for a in made.args):
            return dict(zip(fields, made.args, strict=False)).get(attribute)
        return named

    def fixed(self, made: ast.AST, attribute: str) -> Sequence[ast.expr]:
        """All that an attribute of an object can hold, where nothing but making the object sets it."""
        given = self.given(made, attribute)
        owner = self._calls.built_class(made)
        stored = list(self._attributes.stores(attribute, [owner])) if owner is not None else []
        found: list[ast.expr] = [] if given is None else [given]
        for tree, scope, definition in stored:
            if isinstance(scope, ast.ClassDef) and given is not None:
                continue  # a default that was not taken
            function = tree.function(definition.node)
            made_there = isinstance(scope, ast.ClassDef) or (function and function.name in _MAKING)
            if not made_there or not _plain(definition) or definition.value is None:
                return ()
            found.append(definition.value)
        return found

    def _fields_of(self, owner: ast.ClassDef) -> list[str]:
        """The annotated names of a class and its bases, in the order in which a data class takes them."""
        inherited = [name for base in self._calls.bases(owner) for name in self._fields_of(base)]
        own = [
            s.target.id for s in owner.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        return list(dict.fromkeys(inherited + own))


def _plain(definition: Definition) -> bool:
    return definition.kind == "assign" and not definition.path
