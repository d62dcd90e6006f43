"""Extensions as a CSV file: what the page gives out reads the same again, with a message for every line that cannot be.

Columns may come in any order, and those that are not there change nothing. Gives nobody anything.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from grader.report.safe_text import one_line
from grader.store.courses.courses import AssignedTask
from grader.store.courses.extensions import Extension, StoredExtension
from grader.translation import gettext, number_text
from grader.web.staff.csv_files import to_csv

MAX_BYTES = 1 << 20
_MOST_ROWS = 5000
_MOST = 100_000
COLUMNS = ("login", "task", "due", "days", "extra_attempts", "extra_per_day", "extra_minutes", "reason")
_PERSON = ("login", "external_id")
_EXTRAS = {
    "extra_attempts": "extra_total",
    "extra_per_day": "extra_per_day",
    "extra_minutes": "extra_minutes",
}


@dataclass(frozen=True, slots=True)
class ListedExtension:
    """One line that can be used; `line` is that of the file, counted from 1."""

    line: int
    person_id: int
    name: str
    task: AssignedTask
    given: Extension


@dataclass(frozen=True, slots=True)
class ExtensionList:
    """What could be read, and what is wrong: (line, text) each, line 0 for the whole file."""

    rows: tuple[ListedExtension, ...]
    troubles: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ListContext:
    """What names in a list mean.

    Attributes:
        people: login or external id, small letters → person and name.
        tasks: of the course; a task's own name means it where the course sets it once, `name/profile` always.
        zone: in which dates are written.
    """

    people: Mapping[str, tuple[int, str]]
    tasks: Sequence[AssignedTask]
    zone: tzinfo

    def task(self, text: str) -> AssignedTask | None:
        """The task of that name, `name/profile` or title; None: there is none, or several."""
        found = [
            one
            for one in self.tasks
            if text.casefold()
            in (one.task.casefold(), f"{one.task}/{one.profile}".casefold(), one.terms.title.casefold())
        ]
        return found[0] if len(found) == 1 else None


def decoded(data: bytes) -> str | None:
    """The text of an uploaded file; None: it is none."""
    if len(data) > MAX_BYTES or (b"\0" in data[:1000] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))):
        return None
    for encoding in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def read_extensions(text: str, context: ListContext) -> ExtensionList:
    """Read a list; nothing in it raises."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    lines = csv.DictReader(
        io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=max(",;\t", key=first.count)
    )
    try:
        names = [name.strip().casefold().replace(" ", "_") for name in lines.fieldnames or ()]
        lines.fieldnames = names
        if not set(_PERSON) & set(names) or "task" not in names:
            told = gettext(
                "The first line names the columns: {columns}. It needs login (or external_id) and task, and one of the "
                "others."
            )
            return _whole(told.format(columns=", ".join(COLUMNS)))
        rows: list[ListedExtension] = []
        troubles: list[tuple[int, str]] = []
        for cells in lines:
            if len(rows) >= _MOST_ROWS:
                told = gettext("More than {most} lines; split the list.")
                troubles.append((lines.line_num, told.format(most=number_text(_MOST_ROWS))))
                break
            found = _row(lines.line_num, {name: _text(cells.get(name)) for name in names}, context)
            if isinstance(found, str):
                troubles.append((lines.line_num, found))
            else:
                rows.append(found)
    except csv.Error as error:
        told = gettext("Line {line} cannot be read as CSV: {problem}.")
        return _whole(told.format(line=lines.line_num, problem=error))
    if not rows and not troubles:
        return _whole(gettext("The list names its columns, and nobody below them."))
    return ExtensionList(tuple(rows), tuple(troubles))


def extensions_csv(
    found: Iterable[StoredExtension], tasks: Mapping[int, AssignedTask], zone: tzinfo
) -> bytes:
    """All extensions of a course, as `read_extensions` takes them."""
    rows = []
    for one in found:
        task, given = tasks[one.course_task_id], one.given
        due = "" if given.due_at is None else given.due_at.astimezone(zone).strftime("%Y-%m-%d %H:%M")
        extras = (given.extra_total, given.extra_per_day, given.extra_minutes)
        rows.append((one.login, f"{task.task}/{task.profile}", due, None, *extras, given.reason))
    return to_csv(COLUMNS, rows)


def _whole(text: str) -> ExtensionList:
    return ExtensionList((), ((0, text),))


def _text(cell: object) -> str:
    # Cells beyond the named columns come as a list under no name.
    text = cell.strip() if isinstance(cell, str) else ""
    # As `csv_files` writes what would start a formula.
    return text[1:] if text[:2] in ("'=", "'+", "'-", "'@") else text


def _row(line: int, cells: Mapping[str, str], context: ListContext) -> ListedExtension | str:
    """One line, or what is wrong with it."""
    whom = next((cells[name] for name in _PERSON if cells.get(name)), "")
    person = context.people.get(whom.casefold())
    if person is None:
        told = gettext("“{text}” takes no part in the course.")
        return told.format(text=one_line(whom)) if whom else gettext("Names nobody.")
    task = context.task(cells["task"])
    if task is None:
        told = gettext("The course sets no task “{text}”, or several; write its name as the export does.")
        return told.format(text=one_line(cells["task"]))
    due_at = _due(cells.get("due", ""), cells.get("days", ""), task, context.zone)
    if isinstance(due_at, str):
        return due_at
    extras: dict[str, int] = {}
    for column, field in _EXTRAS.items():
        text = cells.get(column, "").removeprefix("+")
        if text and not (text.isascii() and text.isdigit() and int(text) <= _MOST):
            told = gettext("{column} is a whole number, not “{text}”.")
            return told.format(column=column, text=one_line(text))
        if text:
            extras[field] = int(text)
    given = Extension(due_at, reason=cells.get("reason", "")[:500], **extras)
    if not given.gives_anything:
        return gettext("Gives neither time nor attempts.")
    return ListedExtension(line, person[0], person[1], task, given)


def _due(text: str, days: str, task: AssignedTask, zone: tzinfo) -> datetime | str | None:
    """The new date, of `due` or of `days` after the task's own; None: neither is there; or what is wrong."""
    if text and days:
        return gettext("Has both a date and days; keep one of them.")
    if days:
        number = days.removeprefix("+")
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 1000):
            told = gettext("days is a whole number of days, not “{text}”.")
            return told.format(text=one_line(days))
        if task.terms.due_at is None:
            told = gettext("{title} has no due date to count days from.")
            return told.format(title=one_line(task.terms.title))
        there = task.terms.due_at.astimezone(zone).replace(tzinfo=None) + timedelta(days=int(number))
        return there.replace(tzinfo=zone).astimezone(UTC)
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        told = gettext("due is a date and a time such as 2026-03-31 18:00, not “{text}”.")
        return told.format(text=one_line(text))
    if not 2000 <= at.year <= 2200:
        return gettext("due is a date between 2000 and 2200.")
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
