"""What its decorators make of a function: how it is asked for, and what a call of it gives."""

from __future__ import annotations

from grader.checks.source.syntax_nodes import Function, name_of


def is_property(function: Function) -> bool:
    """Whether reading the attribute of a method's name runs the method."""
    return _decorated(function, "property", "cached_property")


def is_static(function: Function) -> bool:
    """Whether a method is not given the object it belongs to."""
    return _decorated(function, "staticmethod")


def is_context_manager(function: Function) -> bool:
    """Whether a generator's call is entered by `with`, which gives what it yields."""
    return _decorated(function, "contextmanager", "asynccontextmanager")


def _decorated(function: Function, *names: str) -> bool:
    return any(name_of(decorator) in names for decorator in function.decorator_list)
