"""Whether a class follows a protocol: every fault with its file and line, and what was probably meant.

For classes that come from other packages, where no type checker of ours has looked. Makes no instance, calls nothing.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterator
from typing import Any

from grader.plugins.problems import meant

_ABSENT = object()


def protocol_faults(candidate: type, protocol: type) -> list[str]:
    """What keeps a class from being used as a protocol says; [] where nothing does.

    Args:
        candidate: the class, made without arguments.
        protocol: its annotated attributes have to be attributes of the class, of the annotated type; its methods have
            to be there and to take what the protocol's take.

    Returns:
        Sentences for the author of the class, each beginning with `file:line: `.
    """
    members = {name: member for name, member in vars(protocol).items() if _is_member(member, protocol)}
    attributes = typing.get_type_hints(protocol)
    strangers = _strangers(candidate, {*members, *attributes})
    found = [*_constructor(candidate)]
    for name, kind in attributes.items():
        found += _attribute(candidate, protocol, name, kind, strangers)
    for name, member in members.items():
        found += _member(candidate, protocol, name, member, strangers)
    return found


def _is_member(member: object, protocol: type) -> bool:
    # `Protocol` puts a constructor and hooks of its own beside what the author wrote.
    return isinstance(member, property) or (
        inspect.isfunction(member) and member.__module__ == protocol.__module__
    )


def _strangers(candidate: type, known: set[str]) -> list[str]:
    """Public names of the class that the protocol does not know: one of them may be a misspelt one that it does."""
    own = {name for kind in candidate.__mro__ if kind is not object for name in vars(kind)}
    return sorted(name for name in own - known if not name.startswith("_"))


def _constructor(candidate: type) -> Iterator[str]:
    try:
        inspect.signature(candidate).bind()
    except TypeError:
        yield f"{_place(candidate, '__init__')}: `{candidate.__name__}` must be made without arguments."
    except ValueError:  # written in C: nobody knows what it takes
        return


def _attribute(candidate: type, protocol: type, name: str, kind: Any, strangers: list[str]) -> Iterator[str]:
    value = inspect.getattr_static(candidate, name, None)
    if value is None:
        yield _missing(candidate, protocol, name, strangers)
    elif isinstance(kind, type) and not isinstance(value, kind):
        wanted = f"must be a {kind.__name__} of the class itself, not {value!r:.60}"
        yield f"{_place(candidate, name)}: `{name}` {wanted}."


def _member(candidate: type, protocol: type, name: str, wanted: Any, strangers: list[str]) -> Iterator[str]:
    own = inspect.getattr_static(candidate, name, _ABSENT)
    # A class may inherit the protocol itself, whose methods do nothing.
    if own is _ABSENT or own is wanted:
        yield _missing(candidate, protocol, name, strangers)
    elif not isinstance(wanted, property) and (why := _unlike(own, wanted)):
        yield f"{_place(candidate, name)}: `{name}` {why}"


def _unlike(own: Any, wanted: Any) -> str:
    """Why a method cannot be called like the protocol's; "" where it can."""
    if not inspect.isfunction(own):
        return "must be a method."
    if inspect.iscoroutinefunction(own):
        return "must not be a coroutine."
    theirs, mine = inspect.signature(wanted), inspect.signature(own)
    names = list(theirs.parameters)
    required = [name for name in names if theirs.parameters[name].default is inspect.Parameter.empty]
    try:
        mine.bind(*names)
        mine.bind(*required)
        if not wanted.__name__.startswith("__"):
            mine.bind(names[0], **dict.fromkeys(names[1:]))
    except TypeError:
        shown = ", ".join(names[: len(required)] + [f"{name}=…" for name in names[len(required) :]])
        fault = f"must take `({shown})`, not `({', '.join(mine.parameters)})`"
        for name in mine.parameters.keys() - theirs.parameters.keys():
            if near := meant(name, names):
                return f"{fault}; `{name}`: did you mean `{near}`?"
        return f"{fault}."
    return ""


def _missing(candidate: type, protocol: type, name: str, strangers: list[str]) -> str:
    if near := meant(name, strangers):
        return f"{_place(candidate, near)}: `{near}`: did you mean `{name}`?"
    return (
        f"{_place(candidate)}: `{candidate.__name__}` lacks `{name}`, which `{protocol.__name__}` asks for."
    )


def _place(candidate: type, name: str = "") -> str:
    """`file:line` of a name in the body of a class or of one that it inherits; of the class where it is in none."""
    for kind in candidate.__mro__:
        if name in vars(kind):
            line = _line_in_body(kind, name)
            if line:
                return f"{inspect.getsourcefile(kind)}:{line}"
    try:
        return f"{inspect.getsourcefile(candidate)}:{inspect.getsourcelines(candidate)[1]}"
    except (OSError, TypeError):
        return candidate.__module__


def _line_in_body(kind: type, name: str) -> int:
    try:
        lines, first = inspect.getsourcelines(kind)
        body = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError):
        return 0
    for node in ast.iter_child_nodes(body):
        match node:
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                names = [found]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=found)):
                names = [found]
            case _:
                continue
        if name in names:
            return first + node.lineno - 1
    return 0
