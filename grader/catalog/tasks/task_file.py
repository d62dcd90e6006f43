"""Read `task.toml` and tell its author everything that is wrong with it at once: line, key, and what to write.

Looks at the text of the file alone; the folder around it is `tasks`' to check.
"""

from __future__ import annotations

import tomllib
from typing import Any

from grader.catalog.data import data_table
from grader.catalog.formats.problems import Problem, close_to, not_toml, shaped, spelled
from grader.catalog.formats.toml_lines import Key, line_of, lines_of
from grader.catalog.tasks import expected_optimisation, launching, metric_tables
from grader.catalog.tasks.task_schema import TaskFile


def parse(
    text: str, codes: frozenset[str], datasets: tuple[str, ...], name: str
) -> tuple[TaskFile | None, list[Problem]]:
    """The parsed file, or None, and every problem in the order of lines.

    Args:
        text: content of `task.toml`.
        codes: codes of all rules.
        datasets: names of all data sets that can be prepared.
        name: of the task, which its own data is called by.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [not_toml(error, text)]
    lines = lines_of(text)
    parsed, problems = shaped(TaskFile, raw, lines)
    problems += [Problem(line_of(lines, key), text) for key, text in _meaning(raw, codes, datasets, name)]
    return parsed, sorted(problems, key=lambda p: p.line)


def _meaning(
    raw: dict[str, Any], codes: frozenset[str], datasets: tuple[str, ...], task: str
) -> list[tuple[Key, str]]:
    """What no shape can say. Runs on the raw values, so that one wrong shape does not hide the rest."""
    found: list[tuple[Key, str]] = []
    for key, code in _codes_in(raw):
        if code not in codes:
            found.append(
                (
                    key,
                    f"{spelled(key)}: there is no rule {code!r}{close_to(code, codes)}; `grader rules` lists them.",
                )
            )
    applied = _strings(_table(raw, "checks").get("apply"))
    for key, code in _codes_in(raw) if applied else ():
        if key[:2] != ("checks", "apply") and code in codes and code not in applied:
            found.append(
                (key, f"{spelled(key)}: {code} is not in checks.apply, so nobody would look; add it there.")
            )
    wanted, problems = data_table.names(raw, datasets, task)
    found += problems
    profiles = _table(raw, "profiles")
    for name in profiles:
        place: Key = ("profiles", name, "datasets")
        strange = [n for n in _strings(_table(profiles, name).get("datasets")) if n not in wanted]
        found += [(place, f"{spelled(place)}: {n!r} is not in data.datasets; add it.") for n in strange]
    for name, artifact in _table(raw, "artifacts").items():
        table = name.endswith((".csv", ".json"))
        if isinstance(artifact, dict) and table != bool(artifact.get("columns")):
            found.append(
                (
                    ("artifacts", name),
                    f"artifacts.{name}: "
                    + (
                        'a table has columns; add `columns = { loss = "number" }`.'
                        if table
                        else "holds tensors, which have no columns; remove them."
                    ),
                )
            )
    found += metric_tables.problems(raw, wanted) + launching.problems(raw)
    return found + expected_optimisation.problems(raw.get("expected")) + _rubric(raw)


def _rubric(raw: dict[str, Any]) -> list[tuple[Key, str]]:
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
                    f"{spelled((*key, 'id'))}: {name!r} is used twice; give each item its own id.",
                )
            )
        seen.add(str(name))
        if not item.get("requires") and metric is None and item.get("answer") is None:
            found.append(
                (
                    key,
                    f'{spelled(key)}: nothing earns its points. Add `requires = ["DATA001"]` or `metric = "time"`.',
                )
            )
        found += metric_tables.item_problems(key, item, raw)
    points = [i.get("points") for _, i in items]
    numbers = [p for p in points if isinstance(p, int | float) and not isinstance(p, bool)]
    if items and len(numbers) == len(points) and abs(sum(numbers) - 100) > 1e-6:
        found.append((("rubric", 0), f"rubric: the points sum to {sum(numbers):g}; make them 100."))
    return found


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
