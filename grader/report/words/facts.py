"""Free-form facts in words: a finding's details, the environment, the phases of judging."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.report.words.wording import number_text

_MAX_ITEMS = 16
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value: text, or facts below it; `block` marks text of several lines."""

    name: str
    text: str = ""
    below: tuple[Fact, ...] = ()
    block: bool = False


@dataclass(frozen=True, slots=True)
class PhaseBar:
    """One phase of judging and its share of the whole time (0–1)."""

    name: str
    seconds: float
    share: float


def details_facts(details: Mapping[str, Any], depth: int = 0) -> tuple[Fact, ...]:
    """Facts behind a finding, names in plain words."""
    return tuple(_fact(_words(str(name)), value, depth) for name, value in details.items())


def environment_facts(environment: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Versions and machine facts, sorted by name."""
    return tuple(_fact(_words(str(name)), environment[name], 0) for name in sorted(environment, key=str))


def phase_bars(phases: Mapping[str, float]) -> tuple[PhaseBar, ...]:
    """Phases in the order they came, with their share of all."""
    whole = sum(phases.values())
    return tuple(PhaseBar(_words(name), s, s / whole if whole > 0 else 0.0) for name, s in phases.items())


def _fact(name: str, value: Any, depth: int) -> Fact:
    if isinstance(value, Mapping):
        if depth < _MAX_DEPTH and value:
            return Fact(name, below=details_facts(value, depth + 1))
        return Fact(name, "nothing" if not value else "…")
    if isinstance(value, list | tuple):
        return _list_fact(name, list(value), depth)
    text = _scalar(value)
    return Fact(name, text, block="\n" in text)


def _list_fact(name: str, values: list[Any], depth: int) -> Fact:
    if any(isinstance(value, Mapping | list | tuple) for value in values):
        if depth >= _MAX_DEPTH:
            return Fact(name, "…")
        below = [
            _fact(_label(value, index), value, depth + 1) for index, value in enumerate(values[:_MAX_ITEMS])
        ]
        if len(values) > _MAX_ITEMS:
            below.append(Fact("…", f"{len(values) - _MAX_ITEMS:,} more"))
        return Fact(name, below=tuple(below))
    text = ", ".join(_scalar(value) for value in values[:_MAX_ITEMS])
    if len(values) > _MAX_ITEMS:
        text += f", … ({len(values):,} in all)"
    return Fact(name, text or "none")


def _label(value: Any, index: int) -> str:
    if isinstance(value, Mapping):
        for key in ("rank", "epoch", "step", "name"):
            if key in value:
                return f"{key} {_scalar(value[key])}"
    return str(index)


def _scalar(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    for suffix, unit in ((" s", " (s)"), (" bytes", " (bytes)")):
        if words.endswith(suffix):
            return words.removesuffix(suffix) + unit
    return words.removeprefix("num ")


def flat(facts: Iterable[Fact], indent: int = 0) -> Iterable[str]:
    """Facts as indented lines of text."""
    for fact in facts:
        head = "  " * indent + f"{fact.name}:"
        if fact.below:
            yield head
            yield from flat(fact.below, indent + 1)
        elif fact.block:
            yield head
            yield from ("  " * (indent + 1) + line for line in fact.text.splitlines())
        else:
            yield f"{head} {fact.text}"
