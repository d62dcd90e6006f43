"""Read a course file, or tell its author everything that is wrong with it at once: line, key, and what to write.

A course lies beside the folders of its tasks: `tasks/course.toml`. Another course is another such file, in the same
folder for a choice of the same tasks, or in a folder of its own. Whether its tasks can be passed is not asked here:
`grader course check` proves that.
"""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.catalog.tasks.task_folders import find_tasks
from grader.errors import TaskError, UsageError
from grader.model.course import Course, CourseItem
from grader.settings import tasks_dir

if TYPE_CHECKING:
    from grader.catalog.courses.course_schema import CourseTable
    from grader.catalog.formats.problems import Problem
    from grader.catalog.formats.toml_lines import Key

DEFAULT = "course.toml"
_PART = re.compile(r"(\d{1,4})([dhm])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}


def course_files() -> tuple[Path, ...]:
    """All course files in the folder of tasks, `course.toml` first, the others by name."""
    found = sorted(tasks_dir().glob("*.toml"), key=lambda p: (p.name != DEFAULT, p.name))
    return tuple(p for p in found if not p.name.startswith("."))


def load_course(path: Path | None = None) -> Course:
    """Read a course.

    Args:
        path: its file, or the name of one in the folder of tasks, with or without `.toml`; None: `course.toml`.

    Raises:
        UsageError: there is no such file.
        TaskError: the course's author has to mend something; the text names every problem with its line.
    """
    found = _find(path)
    try:
        text = found.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"The course file {found} can't be read: {error}") from None
    from grader.catalog.formats.problems import listed

    profiles = {name: _profiles(name) for name in find_tasks()}
    parsed, problems = parse_course(text, profiles)
    if problems or parsed is None:
        raise TaskError(listed(f"The course file {found.name}", found.name, problems))
    return _course(parsed, found)


def parse_course(text: str, profiles: dict[str, tuple[str, ...]]) -> tuple[CourseTable | None, list[Problem]]:
    """The parsed file, or None, and every problem in the order of lines.

    Args:
        text: content of the course file.
        profiles: name of every task there is → names of its profiles; empty where its own file can't be read.
    """
    from grader.catalog.courses.course_schema import CourseTable
    from grader.catalog.formats.problems import Problem, not_toml, shaped
    from grader.catalog.formats.toml_lines import line_of, lines_of

    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [not_toml(error, text)]
    lines = lines_of(text)
    parsed, problems = shaped(CourseTable, raw, lines)
    problems += [Problem(line_of(lines, key), said) for key, said in _meaning(raw, profiles)]
    return parsed, sorted(problems, key=lambda p: p.line)


def _duration(text: object) -> timedelta | None:
    """`1d 2h 30m` as a span of time; None for anything else, which the schema complains about."""
    parts = [_PART.fullmatch(part) for part in str(text).split(" ")]
    spans = [int(m[1]) * _UNITS[m[2]] for m in parts if m is not None]
    return sum(spans, timedelta(0)) if len(spans) == len(parts) else None


def _find(path: Path | None) -> Path:
    folder = tasks_dir()
    wanted = path if path is not None else folder / DEFAULT
    for candidate in (wanted, folder / wanted, folder / f"{wanted}.toml"):
        if candidate.is_file():
            return candidate
    there = ", ".join(p.name for p in course_files())
    raise UsageError(
        f"There is no course file {wanted}." + (f" In {folder} there are: {there}." if there else "")
    )


def _profiles(task: str) -> tuple[str, ...]:
    """Names of a task's profiles, from its file as written; whatever else is wrong with it is not our matter."""
    try:
        raw = tomllib.loads((tasks_dir() / task / "task.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    found = raw.get("profiles")
    return tuple(found) if isinstance(found, dict) else ()


def _meaning(raw: dict[str, Any], profiles: dict[str, tuple[str, ...]]) -> list[tuple[Key, str]]:
    """What no shape can say. Runs on the raw values, so that one wrong shape does not hide the rest."""
    listed = raw.get("tasks")
    items = [(n, i) for n, i in enumerate(listed) if isinstance(i, dict)] if isinstance(listed, list) else []
    names = [str(i.get("task")) for _, i in items]
    common = raw.get("profile", "cpu")
    found: list[tuple[Key, str]] = []
    for place, (number, item) in enumerate(items):
        key: Key = ("tasks", number)
        found += _names(key, names[place], names[:place], profiles)
        profile = item.get("profile", common)
        known = profiles.get(names[place])
        if known and profile not in known:
            where: Key = (*key, "profile") if "profile" in item else key
            found.append((where, f"{names[place]} has no profile {profile!r}; it has {', '.join(known)}."))
        found += _before(key, item, [i for _, i in items], place)
        found += _dates(key, item)
    bank = raw.get("late_days")
    if isinstance(bank, dict):
        total, per_task = bank.get("total"), bank.get("per_task")
        if isinstance(total, int) and isinstance(per_task, int) and per_task > total:
            text = f"{per_task} days for one task are more than the {total} in all; leave per_task out."
            found.append((("late_days", "per_task"), f"late_days.per_task: {text}"))
        if items and not any("due" in i for _, i in items):
            found.append(
                (("late_days",), "late_days: says nothing where no task is due; add a `due`, or remove it.")
            )
    weights = [i.get("weight") for _, i in items]
    numbers = [w for w in weights if isinstance(w, int | float) and not isinstance(w, bool)]
    if items and len(numbers) == len(weights) and abs(sum(numbers) - 100) > 1e-6:
        found.append((("tasks", 0), f"tasks: the weights sum to {sum(numbers):g}; make them 100."))
    if items and not any(i.get("required", True) for _, i in items):
        found.append((("tasks", 0), "tasks: none is required, so the certificate would need nothing."))
    return found


def _names(
    key: Key, name: str, earlier: list[str], profiles: dict[str, tuple[str, ...]]
) -> list[tuple[Key, str]]:
    from grader.catalog.formats.problems import close_to, spelled

    where: Key = (*key, "task")
    if name in earlier:
        return [(where, f"{spelled(where)}: {name!r} stands in this course already; keep one of the two.")]
    if name not in profiles:
        hint = close_to(name, frozenset(profiles))
        return [(where, f"{spelled(where)}: there is no task {name!r}{hint}; `grader tasks` lists them.")]
    return []


def _before(key: Key, item: dict[str, Any], items: list[dict[str, Any]], place: int) -> list[tuple[Key, str]]:
    """Prerequisites that are not in the course, come later, or are due later."""
    from grader.catalog.formats.problems import close_to, spelled

    names = [str(i.get("task")) for i in items]
    after, where = item.get("after"), (*key, "after")
    due = _duration(item.get("due"))
    found: list[tuple[Key, str]] = []
    for name in after if isinstance(after, list) else ():
        if name not in names:
            hint = close_to(str(name), frozenset(names))
            text = f"{name!r} is not in this course{hint}; add it before this task, or leave it out here."
        elif names.index(name) >= place:
            # Where all prerequisites stand further up, there can be no circle.
            text = (
                "a task can't wait for itself; remove it."
                if names.index(name) == place
                else f"{name!r} comes later in the order; move it up, or one would wait for the other for ever."
            )
        elif (
            due is not None and (earlier := _duration(items[names.index(name)].get("due"))) and earlier > due
        ):
            text = f"{name!r} comes first and is due later than this task; exchange the dates."
        else:
            continue
        found.append((where, f"{spelled(where)}: {text}"))
    return found


def _dates(key: Key, item: dict[str, Any]) -> list[tuple[Key, str]]:
    from grader.catalog.formats.problems import spelled

    found: list[tuple[Key, str]] = []
    opens, due = _duration(item.get("opens", "0d")), _duration(item.get("due"))
    if opens is not None and due is not None and due <= opens:
        where: Key = (*key, "due")
        found.append((where, f"{spelled(where)}: it is due before it opens; nobody could hand in."))
    for name in ("late", "hidden_until_due", "grace_minutes"):
        if "due" not in item and item.get(name, "closed") not in ("closed", False):
            where = (*key, name)
            found.append((where, f"{spelled(where)}: says nothing without `due`; add one, or remove it."))
    if item.get("late") == "reduced" and not item.get("late_loss"):
        where = (*key, "late")
        found.append((where, f"{spelled(where)}: by how much? Add `late_loss = 0.1`, a share for each day."))
    late = item.get("late", "closed")
    for name, needs in (("late_loss", ("reduced",)), ("late_days", ("accepted", "reduced"))):
        if item.get(name) and late not in needs:
            where, wanted = (*key, name), " or ".join(f'`late = "{one}"`' for one in needs)
            found.append(
                (
                    where,
                    f"{spelled(where)}: says nothing where late is {late!r}; write {wanted}, or remove it.",
                )
            )
    return found


def _course(parsed: CourseTable, path: Path) -> Course:
    items = tuple(
        CourseItem(
            task=i.task,
            profile=i.profile or parsed.profile,
            weight=i.weight,
            required=i.required,
            after=tuple(i.after),
            opens=_duration(i.opens) or timedelta(0),
            due=_duration(i.due),
            late=i.late,
            late_loss=i.late_loss,
            late_days=i.late_days,
            hidden_until_due=i.hidden_until_due,
            max_per_day=i.max_per_day,
            max_total=i.max_total,
            grace_minutes=i.grace_minutes,
        )
        for i in parsed.tasks
    )
    bank = parsed.late_days
    return Course(
        *(parsed.name, parsed.title, parsed.about, path, items),
        late_days=0 if bank is None else bank.total,
        late_days_per_task=None if bank is None else bank.per_task,
    )
