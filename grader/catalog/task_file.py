"""Read `task.toml` and tell its author everything that is wrong with it at once: line, key, and what to write.

Looks at the text of the file alone; the folder around it is `tasks`' to check.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from grader.catalog import asked
from grader.catalog.lines import Key, line_of, lines_of
from grader.catalog.schema import TaskFile


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend; `line` is 1-based, 0 where the file as a whole is meant."""

    line: int
    text: str


def parse(
    text: str, codes: frozenset[str], datasets: tuple[str, ...]
) -> tuple[TaskFile | None, list[Problem]]:
    """The parsed file, or None, and every problem in the order of lines.

    Args:
        text: content of `task.toml`.
        codes: codes of all rules.
        datasets: names of all data sets that can be prepared.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [_syntax(str(error), text)]
    lines = lines_of(text)
    problems: list[Problem] = []
    parsed = None
    try:
        parsed = TaskFile.model_validate(raw)
    except ValidationError as error:
        problems += [_shape(detail, lines) for detail in error.errors()]
    problems += [Problem(line_of(lines, key), text) for key, text in _meaning(raw, codes, datasets)]
    return parsed, sorted(problems, key=lambda p: p.line)


def _syntax(message: str, text: str) -> Problem:
    place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    line = int(place[1]) if place and place[1] else max(1, len(text.splitlines()))
    what = message[: place.start()].strip() if place else message
    quoted = text.splitlines()[line - 1].strip() if text.strip() else ""
    return Problem(line, f"not TOML: {what}. Mend `{quoted[:80]}`; nothing after it was read.")


def _shape(detail: ErrorDetails, lines: dict[Key, int]) -> Problem:
    # A key that is missing has no line: its table's is given.
    key = tuple(part for part in detail["loc"] if part != "[key]")
    line, name = line_of(lines, key), _spelled(key)
    owner, field = _owner(key)
    wanted = _example(str(key[-1]) if key else "", field)
    match detail["type"]:
        case "missing":
            return Problem(line, f"{name}: is missing. {wanted or 'Add it.'}")
        case "extra_forbidden":
            known = sorted(owner.model_fields) if owner else []
            close = difflib.get_close_matches(str(key[-1]), known, n=1)
            advice = f"Write `{close[0]}`." if close else f"Known here: {', '.join(known)}."
            return Problem(line, f"{name}: there is no such key. {advice}")
        case "string_pattern_mismatch":
            return Problem(
                line,
                f"{name}: {detail['input']!r} is not spelled as it must be ({_pattern(detail)}). {wanted}".rstrip(),
            )
    said = detail["msg"].removeprefix("Input ")
    return Problem(line, f"{name}: {_value(detail['input'])} {said}. {wanted}".rstrip())


def _value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _pattern(detail: ErrorDetails) -> str:
    pattern = str(detail.get("ctx", {}).get("pattern", ""))
    if pattern.startswith("^[A-Z]"):
        return "a rule code such as DATA002"
    if pattern.startswith("^accepted"):
        return "a path such as accepted/distributed_sampler.py"
    return "small letters, digits, - and _" if pattern.startswith("^[a-z") else f"pattern {pattern}"


def _spelled(key: Key) -> str:
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"


def _owner(key: Key) -> tuple[type[BaseModel] | None, FieldInfo | None]:
    """The table class that a key lies in, and the key's field if it has one."""
    owner: type[BaseModel] | None = TaskFile
    for part in key[:-1]:
        if owner is not None and isinstance(part, str) and part in owner.model_fields:
            inner = _table_in(owner.model_fields[part].annotation)
            owner = inner or owner
    field = owner.model_fields.get(str(key[-1])) if owner and key else None
    return owner, field


def _table_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _table_in(arg))), None)


def _example(key: str, field: FieldInfo | None) -> str:
    examples = _examples(field.annotation, field) if field else None
    if not examples:
        table = _table_in(field.annotation) if field else None
        return f"Add a table: {(table.__doc__ or '').splitlines()[0]}" if table else ""
    return f"Write `{key} = {_toml(examples[0])}`."


def _examples(annotation: Any, field: FieldInfo) -> list[Any] | None:
    if field.examples:
        return field.examples
    # `Annotated[int, Field(examples=…)] | None` keeps the inner field in the union's arguments.
    for arg in get_args(annotation):
        for extra in getattr(arg, "__metadata__", ()):
            if isinstance(extra, FieldInfo) and extra.examples:
                return extra.examples
    return None


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(_toml(v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{k} = {_toml(v)}' for k, v in value.items())} }}"
    return str(value)


def _meaning(raw: dict[str, Any], codes: frozenset[str], datasets: tuple[str, ...]) -> list[tuple[Key, str]]:
    """What no shape can say. Runs on the raw values, so that one wrong shape does not hide the rest."""
    found: list[tuple[Key, str]] = []
    for key, code in _codes_in(raw):
        if code not in codes:
            found.append(
                (
                    key,
                    f"{_spelled(key)}: there is no rule {code!r}{_close(code, codes)}; `grader rules` lists them.",
                )
            )
    applied = _strings(_table(raw, "checks").get("apply"))
    for key, code in _codes_in(raw) if applied else ():
        if key[:2] != ("checks", "apply") and code in codes and code not in applied:
            found.append(
                (key, f"{_spelled(key)}: {code} is not in checks.apply, so nobody would look; add it there.")
            )
    wanted = _strings(_table(raw, "data").get("datasets"))
    for name in wanted:
        if name not in datasets:
            hint = _close(name, frozenset(datasets))
            found.append(
                (
                    ("data", "datasets"),
                    f"data.datasets: there is no data set {name!r}{hint}. There are {', '.join(datasets)}.",
                )
            )
    profiles = _table(raw, "profiles")
    for name in profiles:
        place: Key = ("profiles", name, "datasets")
        strange = [n for n in _strings(_table(profiles, name).get("datasets")) if n not in wanted]
        found += [(place, f"{_spelled(place)}: {n!r} is not in data.datasets; add it.") for n in strange]
    targets = _table(raw, "targets")
    levels = _table(_table(targets, "accuracy"), "at_least")
    if _table(raw, "data").get("scored") is False and "accuracy" in targets:
        found.append(
            (
                ("targets", "accuracy"),
                "targets.accuracy: data.scored is false, so no accuracy is measured; remove one of the two.",
            )
        )
    for name in wanted if levels else ():
        if name not in levels:
            found.append(
                (
                    ("targets", "accuracy", "at_least"),
                    f"targets.accuracy.at_least: says nothing about {name}; add `{name} = 0.9`.",
                )
            )
    for name in levels:
        if name not in wanted:
            found.append(
                (
                    ("targets", "accuracy", "at_least"),
                    f"targets.accuracy.at_least: {name!r} is not in data.datasets{_close(name, frozenset(wanted))}.",
                )
            )
    return found + asked.problems(raw.get("expected")) + _rubric(raw, targets)


def _rubric(raw: dict[str, Any], targets: dict[str, Any]) -> list[tuple[Key, str]]:
    found: list[tuple[Key, str]] = []
    items = (
        [(n, i) for n, i in enumerate(raw.get("rubric") or ()) if isinstance(i, dict)]
        if isinstance(raw.get("rubric"), list)
        else []
    )
    seen: set[str] = set()
    for number, item in items:
        key: Key = ("rubric", number)
        name, metric = item.get("id"), item.get("metric")
        if isinstance(name, str) and name in seen:
            found.append(
                (
                    (*key, "id"),
                    f"{_spelled((*key, 'id'))}: {name!r} is used twice; give each item its own id.",
                )
            )
        seen.add(str(name))
        if not item.get("requires") and metric is None:
            found.append(
                (
                    key,
                    f'{_spelled(key)}: nothing earns its points. Add `requires = ["DATA001"]` or `metric = "time"`.',
                )
            )
        if metric in {"accuracy", "time"} and metric not in targets:
            found.append(
                (
                    (*key, "metric"),
                    f"{_spelled((*key, 'metric'))}: there is no [targets.{metric}]; add the table.",
                )
            )
        found += _partial(key, item)
    points = [i.get("points") for _, i in items]
    numbers = [p for p in points if isinstance(p, int | float) and not isinstance(p, bool)]
    if items and len(numbers) == len(points) and abs(sum(numbers) - 100) > 1e-6:
        found.append((("rubric", 0), f"rubric: the points sum to {sum(numbers):g}; make them 100."))
    return found


def _partial(key: Key, item: dict[str, Any]) -> list[tuple[Key, str]]:
    partial = item.get("partial")
    if not isinstance(partial, list) or not partial:
        return []
    key, metric = (*key, "partial"), item.get("metric")
    if metric is None:
        return [(key, f"{_spelled(key)}: only an item with a `metric` has partial thresholds; remove it.")]
    steps = [p.get("of_target") for p in partial if isinstance(p, dict)]
    numbers = [s for s in steps if isinstance(s, int | float)]
    side = "below" if metric == "accuracy" else "above"
    if any((s >= 1) if side == "below" else (s <= 1) for s in numbers):
        return [
            (
                key,
                f"{_spelled(key)}: for {metric}, of_target lies {side} 1, as it is a multiple of the target.",
            )
        ]
    if numbers != sorted(numbers):
        return [(key, f"{_spelled(key)}: order the entries by of_target, smallest first.")]
    return []


def _codes_in(raw: dict[str, Any]) -> list[tuple[Key, str]]:
    checks = _table(raw, "checks")
    found: list[tuple[Key, str]] = [
        (("checks", name), c) for name in ("apply", "must", "costly") for c in _strings(checks.get(name))
    ]
    rubric = raw.get("rubric")
    for number, item in enumerate(rubric if isinstance(rubric, list) else ()):
        if isinstance(item, dict):
            found += [(("rubric", number, "requires"), c) for c in _strings(item.get("requires"))]
    return found


def _table(raw: dict[str, Any], name: str) -> dict[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _close(word: str, known: frozenset[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
