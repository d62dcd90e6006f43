"""Holds one loaded module against the shape of its kind and names everything that does not fit."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from grader.plugins.problems import meant
from grader.plugins.shape import Constant, Function, Shape
from grader.plugins.source_lines import SourceLines


def strange_names(shape: Shape, lines: SourceLines) -> Iterator[tuple[str, str, str]]:
    """Names of a file that the shape does not know, each with the one that was meant, or "", and what to say."""
    known = ", ".join(f"`{name}`" for name in shape.names)
    for name in lines.strange(shape.names, closed=shape.closed):
        if guess := meant(name, shape.names):
            yield name, guess, f"`{name}`: did you mean `{guess}`?"
        else:
            own = "what is the module's own begins with _"
            yield name, "", f"`{name}`: {shape.what} has no such name, only {known}; {own}"


_ANY_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class ShapeCheck:
    """One module against one shape; the file is parsed only where a line is asked for."""

    def __init__(self, shape: Shape, module: ModuleType, path: Path) -> None:
        self.shape = shape
        self.module = module
        self.path = path

    @cached_property
    def lines(self) -> SourceLines:
        """Where things stand in the file."""
        return SourceLines(self.path)

    def faults(self) -> Iterator[tuple[int, str]]:
        """Line and text of everything that does not fit."""
        guessed: dict[str, str] = {}
        if self._suspicious():
            for name, guess, text in strange_names(self.shape, self.lines):
                guessed[name] = guess
                yield self.lines.of(name), text
        yield from self._page()
        for constant in self.shape.constants:
            if constant.name not in guessed.values():
                yield from self._constant(constant)
        for function in self.shape.functions:
            if function.name not in guessed.values():
                yield from self._function(function)
        wanted = [f for f in self.shape.functions if not f.required]
        there = vars(self.module)
        if wanted and not any(f.name in there or f.name in guessed.values() for f in self.shape.functions):
            yield 1, f"does nothing; write {' or '.join(f'`{f.signature}`' for f in wanted)}"

    def _suspicious(self) -> bool:
        """Whether the file may define a name that the shape does not know; to parse each takes a linter too long."""
        known = self.shape.names
        names = [
            name
            for name, value in vars(self.module).items()
            if not name.startswith("_")
            and name not in known
            and not isinstance(value, ModuleType)
            and type(value).__module__ not in {"__future__", "typing"}
            and (not isinstance(value, type | FunctionType) or value.__module__ == self.module.__name__)
        ]
        return any(_may_define(self.lines.text, name) for name in names)

    def _constant(self, constant: Constant) -> Iterator[tuple[int, str]]:
        if constant.name not in vars(self.module):
            if constant.required:
                yield 1, f"`{constant.name}` is missing; write `{constant.example}`"
            return
        for complaint in constant.complaints(vars(self.module)[constant.name]):
            line = self.lines.of(constant.name, complaint.culprit)
            yield line, f"`{constant.name}`: {complaint.text}"

    def _function(self, function: Function) -> Iterator[tuple[int, str]]:
        if function.name not in vars(self.module):
            if function.required:
                yield 1, f"`{function.name}` is missing; write `{function.signature}`"
            return
        found = vars(self.module)[function.name]
        if not isinstance(found, FunctionType) or inspect.iscoroutinefunction(found):
            yield (
                self.lines.of(function.name),
                f"`{function.name}` is no function; write `{function.signature}`",
            )
        elif not _fits(found, function):
            yield self.lines.of(function.name), f"`{function.name}`: write `{function.signature}`"

    def _page(self) -> Iterator[tuple[int, str]]:
        """The docstring: there at all, and its headings those of the shape."""
        text, wanted = self.module.__doc__ or "", " · ".join(self.shape.sections)
        if not text.strip():
            sections = f", with the sections {wanted}" if wanted else ""
            yield 1, f"has no docstring; it is the page of {self.shape.what}{sections}"
            return
        if not self.shape.sections:
            return
        title, *rest = text.strip().splitlines()
        if not title.strip() or (rest and rest[0].strip()):
            yield self.lines.in_docstring(0), "a page begins with a title of one line and a blank line"
        headings = [
            (n, line[3:].strip()) for n, line in enumerate(text.splitlines()) if line.startswith("## ")
        ]
        if [heading for _, heading in headings] == list(self.shape.sections):
            return
        for (offset, heading), right in zip(headings, self.shape.sections, strict=False):
            if heading != right:
                yield (
                    self.lines.in_docstring(offset),
                    f"`## {heading}`: write `## {right}`; sections are {wanted}",
                )
                return
        yield self.lines.in_docstring(0), f"the sections of the page of {self.shape.what} are {wanted}"


def _may_define(text: str, name: str) -> bool:
    """Whether a line assigns or defines a name, as far as its characters tell; rather once too often."""
    # A regular expression would have to be compiled for each name, which takes longer than to import a rule.
    for line in text.splitlines():
        if name in line:
            before, _, after = line.partition("#")[0].partition(name)
            if "=" in after.replace("==", "") or before.split()[-1:] in (["def"], ["class"]):
                return True
    return False


def _fits(found: FunctionType, wanted: Function) -> bool:
    # What `inspect.signature` would say, which takes longer than to import a rule.
    plain = inspect.unwrap(found)
    if not isinstance(plain, FunctionType) or plain.__defaults__ or plain.__kwdefaults__:
        return False
    code = plain.__code__
    if code.co_varnames[: code.co_argcount] != tuple(wanted.parameters):
        return False
    if code.co_posonlyargcount or code.co_kwonlyargcount or code.co_flags & _ANY_MORE:
        return False
    annotations = dict(plain.__annotations__)
    returned = annotations.pop("return", None)
    allowed = {name for text in wanted.returns for name in _heads(text)}
    return all(_heads(given) == _heads(wanted.parameters[name]) for name, given in annotations.items()) and (
        "return" not in plain.__annotations__ or _heads(returned) <= allowed
    )


def _heads(annotation: Any) -> frozenset[str]:
    """Names of the types in a union, without packages and without what stands in brackets."""
    return _heads_in(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


@lru_cache(maxsize=256)
def _heads_in(text: str) -> frozenset[str]:
    # Many plug-ins of a kind are annotated alike.
    try:
        return _heads_of(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return frozenset({text})


def _heads_of(annotation: ast.expr) -> frozenset[str]:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _heads_of(left) | _heads_of(right)
        case ast.Subscript(value=ast.Name("Optional") | ast.Attribute(attr="Optional"), slice=inner):
            return _heads_of(inner) | {"None"}
        case ast.Subscript(value=value):
            return _heads_of(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return frozenset({name})
        case ast.Constant(value=str() as text):
            return _heads_in(text)
    return frozenset({ast.unparse(annotation)})
