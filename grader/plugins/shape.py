"""What a plug-in of a kind holds: constants with their types, functions with their signatures, a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.plugins.problems import meant


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with a value; `culprit` is the part of it that is wrong, where it can be named."""

    text: str
    culprit: object = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A name that a plug-in assigns once.

    Attributes:
        example: an assignment that is right.
        complaints: what is wrong with a value, as text that follows the name.
    """

    name: str
    example: str
    complaints: Callable[[Any], Iterable[Complaint]]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a plug-in defines.

    Attributes:
        parameters: name → name of its type, in order; all are positional and required.
        returns: names of the types that may be returned; the first is shown as an example.
    """

    name: str
    parameters: Mapping[str, str]
    returns: tuple[str, ...]
    required: bool = True

    @property
    def signature(self) -> str:
        """As it is to be written."""
        parameters = ", ".join(f"{name}: {kind}" for name, kind in self.parameters.items())
        return f"def {self.name}({parameters}) -> {self.returns[0]}"


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that a plug-in of a kind may hold.

    Attributes:
        what: the kind in words, such as `a rule`.
        file_name: what the module's name looks like; file_example: one that is right.
        sections: headings of its docstring, in order; empty where its form is free.
        closed: False where further public functions and classes are the module's own affair.
    """

    what: str
    constants: tuple[Constant, ...] = ()
    functions: tuple[Function, ...] = ()
    file_name: re.Pattern[str] = re.compile(r"[a-z]\w*")
    file_example: str = "name.py"
    sections: tuple[str, ...] = ()
    closed: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it knows."""
        return (*(one.name for one in self.constants), *(one.name for one in self.functions))


def of_type(kind: type, words: str) -> Callable[[Any], Iterator[Complaint]]:
    """Complains of what is not exactly of this type; `words` say what is wanted, such as `a whole number`."""

    def complaints(value: Any) -> Iterator[Complaint]:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            yield Complaint(f"is {value!r:.60}; it must be {words}")

    return complaints


def unknown(word: str, known: Iterable[str], what: str) -> Complaint:
    """Says that there is no such thing, and what was meant."""
    known = sorted(known)
    close = meant(word, known)
    hint = f"did you mean {close!r}?" if close else f"there is {', '.join(known[:8])}"
    return Complaint(f"there is no {what} {word!r}; {hint}", word)
