"""What a task's networks are measured by and have to reach, from its file's `[metrics]` and `[targets]` tables.

A file that names no metrics means the accuracy of a classifier, as `[targets.accuracy]` always did: behind this module
there are metrics alone. Says to the author where keys don't make sense together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from grader.catalog.formats.problems import close_to, spelled
from grader.catalog.formats.toml_lines import Key
from grader.model.metric import ACCURACY, Direction, Metric
from grader.model.task import TIME, Target

if TYPE_CHECKING:
    # Not for real: pydantic takes its time, and `grader lint` starts without it.
    from grader.catalog.tasks.task_schema import MetricTable, TaskFile

EVERY = ""
"""Stands for all data sets where a target is one number."""
STEP_DIGITS = 5
"""Of the last decimal that people are shown, in one step that learners read."""
_SIDES = {"at_least": Direction.MAX, "at_most": Direction.MIN}
_MEASURED_ANYWAY = (
    TIME, "cpu_s", "wall_s", "time_s", "speedup", "efficiency", "num_epochs", "num_steps",
    "samples_per_s", "samples_per_s_one_rank", "images_per_s", "images_per_s_one_rank",
)  # fmt: skip


def metrics(parsed: TaskFile) -> tuple[Metric, ...]:
    """The task's metrics in the order of its file."""
    if parsed.metrics:
        return tuple(_metric(name, table) for name, table in parsed.metrics.items())
    return (ACCURACY,) if parsed.data.scored else ()


def targets(parsed: TaskFile, datasets: Sequence[str]) -> tuple[Target, ...]:
    """What the metrics have to reach on these data sets, and the time."""
    levels = {name: table.at_least or table.at_most for name, table in parsed.metrics.items()}
    if parsed.targets.accuracy is not None:
        levels[ACCURACY.name] = parsed.targets.accuracy.at_least
    found = [Target(name, levels=_by_dataset(level, datasets)) for name, level in levels.items() if level]
    if parsed.targets.time is not None:
        found.append(Target(TIME, factor=parsed.targets.time.factor))
    return tuple(found)


def _by_dataset(level: dict[str, float], datasets: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(datasets, level[EVERY]) if EVERY in level else dict(level)


def _metric(name: str, table: MetricTable) -> Metric:
    lower = table.direction == "min" or table.at_most is not None
    return Metric(
        name=name,
        title=table.title or name.replace("-", " ").replace("_", " "),
        unit=table.unit,
        decimals=table.decimals,
        direction=Direction.MIN if lower else Direction.MAX,
        readable_step=table.readable_step or STEP_DIGITS * 10.0**-table.decimals,
        share=table.share,
        reported_as=table.reported_as or f"val_{name.replace('-', '_')}",
    )


def problems(raw: dict[str, Any], datasets: Sequence[str]) -> list[tuple[Key, str]]:
    """What is wrong with the raw tables beyond their shape: (key, what to write)."""
    named, old = _table(raw, "metrics"), _table(_table(raw, "targets"), "accuracy")
    found: list[tuple[Key, str]] = []
    if named and old:
        text = (
            "targets.accuracy: this file names its metrics; write `at_least` into [metrics.accuracy] instead."
        )
        found.append((("targets", "accuracy"), text))
    if _table(raw, "data").get("scored") is False:
        for place, _ in _places(raw):
            text = f"{spelled(place)}: data.scored is false, so nothing is measured; remove one of the two."
            found.append((place, text))
    for place, table in _places(raw):
        for side in _SIDES:
            found += _levels((*place, side), table.get(side), datasets, share=bool(table.get("share")))
    reported: dict[str, str] = {}
    for name, table in ((n, _table(named, n)) for n in named):
        place = ("metrics", name)
        if name in _MEASURED_ANYWAY or name.startswith("validation_") or name.endswith("_target"):
            found.append((place, f"{spelled(place)}: the grade has a number of that name; choose another."))
        found += [((*place, key), f"{spelled((*place, key))}: {said}") for key, said in _sides(table)]
        told = str(table.get("reported_as", f"val_{name.replace('-', '_')}"))
        if told in reported:
            text = f"{told!r} is what {reported[told]} is reported as; choose another."
            found.append(((*place, "reported_as"), f"{spelled((*place, 'reported_as'))}: {text}"))
        reported[told] = name
    return found


def _sides(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where a metric does not say, or says twice, which values are better."""
    asked, direction = [side for side in _SIDES if side in table], table.get("direction")
    if len(asked) == 2:
        yield (
            "at_most",
            "a metric is better when it is larger or when it is smaller; keep one of the two targets.",
        )
    elif not asked and direction is None:
        yield (
            "direction",
            'is missing. Write `direction = "max"` where more is better, `direction = "min"` where less is.',
        )
    elif asked and direction is not None and direction != _SIDES[asked[0]]:
        yield "direction", f"{direction!r} contradicts `{asked[0]}`; remove it."


def _levels(place: Key, levels: object, datasets: Sequence[str], *, share: bool) -> list[tuple[Key, str]]:
    by_dataset = levels if isinstance(levels, dict) else {}
    name = spelled(place)
    found = []
    for dataset in datasets if by_dataset else ():
        if dataset not in by_dataset:
            found.append(f"{name}: says nothing about {dataset}; add `{dataset} = 0.9`.")
    for dataset in by_dataset:
        if datasets and dataset not in datasets:
            found.append(
                f"{name}: {dataset!r} is not in data.datasets{close_to(dataset, frozenset(datasets))}."
            )
    if share and any(not 0 < number < 1 for number in _numbers(levels)):
        found.append(f"{name}: a share lies between 0 and 1.")
    return [(place, text) for text in found]


def _numbers(levels: object) -> list[float]:
    """The numbers among raw levels, which are one or one for each data set."""
    given = levels.values() if isinstance(levels, dict) else [levels]
    return [number for number in given if isinstance(number, int | float)]


def item_problems(key: Key, item: dict[str, Any], raw: dict[str, Any]) -> list[tuple[Key, str]]:
    """What is wrong with the metric of one rubric item, and with its partial credit."""
    name, partial = item.get("metric"), item.get("partial")
    if name is None:
        text = (
            f"{spelled((*key, 'partial'))}: only an item with a `metric` has partial thresholds; remove it."
        )
        return [((*key, "partial"), text)] if partial else []
    asked = {str(place[-1]): next((s for s in _SIDES if s in t), "") for place, t in _places(raw)}
    timed = TIME in _table(raw, "targets")
    if not isinstance(name, str) or (name == TIME and timed):
        side = "above"
    elif asked.get(name):
        side = "below" if asked[name] == "at_least" else "above"
    else:
        place = (*key, "metric")
        return [(place, f"{spelled(place)}: {_no_target(name, asked)}")]
    said = list(_partial(name, partial, side))
    tables = [t for place, t in _places(raw) if place[-1] == name]
    if partial and any(level <= 0 for t in tables for s in _SIDES for level in _numbers(t.get(s))):
        said.append("only of a target above 0 a multiple is something near; remove it.")
    return [((*key, "partial"), f"{spelled((*key, 'partial'))}: {text}") for text in said]


def _no_target(name: str, asked: dict[str, str]) -> str:
    if name in asked:
        return f"[metrics.{name}] sets no target; add `at_least` or `at_most` there."
    table = "targets.time" if name == TIME else f"metrics.{name}"
    return f"there is no [{table}]{close_to(name, frozenset(asked))}; add the table."


def _partial(name: object, partial: object, side: str) -> Iterator[str]:
    entries = [p for p in partial if isinstance(p, dict)] if isinstance(partial, list) else []
    steps = [s for p in entries if isinstance(s := p.get("of_target"), int | float)]
    if any((s >= 1) if side == "below" else (s <= 1) for s in steps):
        yield f"for {name}, of_target lies {side} 1, as it is a multiple of the target."
    elif steps != sorted(steps):
        yield "order the entries by of_target, smallest first."


def _places(raw: dict[str, Any]) -> list[tuple[Key, dict[str, Any]]]:
    """Every table that measures a network, with its key."""
    named, targets = _table(raw, "metrics"), _table(raw, "targets")
    found: list[tuple[Key, dict[str, Any]]] = [(("metrics", name), _table(named, name)) for name in named]
    if "accuracy" in targets:
        found.append((("targets", "accuracy"), _table(targets, "accuracy")))
    return found


def _table(raw: dict[str, Any], name: str) -> dict[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
