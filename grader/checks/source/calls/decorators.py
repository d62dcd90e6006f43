"""What its decorators make of a function: how it is asked for, and what a call of it gives."""

from __future__ import annotations

import ast

from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, name_of

_ONLY_WRAP = (
    "abc.", "classmethod", "contextlib.", "functools.", "property", "staticmethod", "torch.", "typing.",
)  # fmt: skip
"""How decorators begin that leave it to the script to call what they are written above."""


def is_property(function: Function) -> bool:
    """Whether reading the attribute of a method's name runs the method."""
    return _decorated(function, "property", "cached_property")


def is_static(function: ast.AST) -> bool:
    """Whether a method is not given the object it belongs to."""
    return isinstance(function, FUNCTIONS) and _decorated(function, "staticmethod")


def class_given(names: Names, node: ast.AST) -> ast.ClassDef | None:
    """The class that `cls` stands for in a class method: its own, as nobody can tell of which child it is asked."""
    if not isinstance(node, ast.Name) or node.id != "cls":
        return None
    function = names.tree(node).function(node)
    if function is None or not takes_class(function) or [a.arg for a in function.args.args[:1]] != ["cls"]:
        return None
    return names.tree(node).enclosing_class(function)


def takes_class(function: ast.AST) -> bool:
    """Whether a method is given its class, also where it is called by the class's name."""
    return isinstance(function, FUNCTIONS) and _decorated(function, "classmethod")


def is_context_manager(function: Function) -> bool:
    """Whether a generator's call is entered by `with`, which gives what it yields."""
    return _decorated(function, "contextmanager", "asynccontextmanager")


def may_call(names: Names, decorator: ast.expr) -> bool:
    """Whether a decorator may keep a function to call it some time, as `@engine.on("completed")` does."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return not (names.qualified(named) or name_of(named)).startswith(_ONLY_WRAP)


def _decorated(function: Function, *names: str) -> bool:
    return any(name_of(decorator) in names for decorator in function.decorator_list)
