"""A list of people as a CSV file, read with a message for every line that cannot be used.

Semicolons, tabs and byte order marks are fine, columns may come in any order. Asks no database.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from grader.report.safe_text import one_line
from grader.store.courses.roster_imports import RosterLine
from grader.store.tables.person import COURSE_ROLES, Role
from grader.translation import counted, gettext, number_text

MAX_BYTES = 1 << 20
MAX_PEOPLE = 2000
MAX_LOGIN, MAX_NAME, MAX_DETAIL = 120, 200, 120
# How spreadsheets of schools, universities and learning platforms call what we want to know.
_EMAIL = ("email", "e-mail", "email address", "e-mail address", "mail")
_LOGIN = ("login", "username", "user", "user name", "account", "sis login id", *_EMAIL)
_NAME = ("name", "full name", "fullname", "display name", "student")
_FIRST = ("first name", "firstname", "given name", "forename")
_LAST = ("last name", "lastname", "surname", "family name")
_SECTION = ("section", "sections", "section name", "group", "groups", "tutorial", "class")
_EXTERNAL_ID = (
    "external id",
    "sis user id",
    "sis id",
    "id number",
    "student id",
    "student number",
    "matriculation number",
    "matrikelnummer",
    "matrikel",
    "id",
)
_ROLE = ("role", "roles", "course role")
_ROLES = {
    **dict.fromkeys(("learner", "student", "studentenrollment", "participant"), Role.LEARNER),
    **dict.fromkeys(
        ("assistant", "ta", "taenrollment", "teaching assistant", "tutor", "non-editing teacher"),
        Role.ASSISTANT,
    ),
    **dict.fromkeys(("observer", "observerenrollment", "guest"), Role.OBSERVER),
    **dict.fromkeys(
        ("instructor", "teacher", "teacherenrollment", "editing teacher", "editingteacher", "lecturer"),
        Role.INSTRUCTOR,
    ),
}
_MAX_EMAIL = 254
_EMAIL_SHAPE = re.compile(r"[^@\s,;<>\"]+@[^@\s,;<>\"]+")
_LOGIN_SHAPE = re.compile(r"[^\s,;/\\\"'<>]+")


@dataclass(frozen=True, slots=True)
class RosterProblem:
    """What is wrong with a line; `line` 0: with the whole file."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Roster:
    """What could be read, and what could not."""

    people: tuple[RosterLine, ...]
    troubles: tuple[RosterProblem, ...]

    def as_text(self) -> str:
        """Those that could be read, as CSV that reads the same again."""
        out = io.StringIO(newline="")
        rows = (
            (one.login, one.name, one.role, one.email, one.section, one.external_id) for one in self.people
        )
        csv.writer(out).writerows([("login", "name", "role", "email", "section", "external id"), *rows])
        return out.getvalue()


def read_roster(data: bytes) -> Roster:
    """Read a list of people from a file's bytes; nothing in it raises."""
    if len(data) > MAX_BYTES:
        told = gettext("The file has more than {most} MiB; a list of people is far smaller.")
        return _unreadable(told.format(most=MAX_BYTES >> 20))
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return _unreadable(
            gettext("This is a workbook. Save the sheet as CSV (“Save as… CSV UTF-8”) and choose that file.")
        )
    text = _decoded(data)
    if text is None:
        return _unreadable(
            gettext("The file is not text. Save the sheet as “CSV UTF-8” and choose that file.")
        )
    return read_text(text)


def read_text(text: str) -> Roster:
    """Read a list of people from text, as it may also be pasted."""
    if not text.strip():
        return _unreadable(gettext("The list is empty. Its first line names the columns: login,name."))
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=_delimiter(text))
    try:
        rows = [
            (lines.line_num, [cell.strip() for cell in row]) for row in lines if any(c.strip() for c in row)
        ]
    except csv.Error as error:
        told = gettext("Line {line} cannot be read as CSV: {problem}.")
        return _unreadable(told.format(line=lines.line_num, problem=error))
    if not rows:
        return _unreadable(gettext("The list is empty. Its first line names the columns: login,name."))
    if rows[0][1][0].casefold().startswith("sep="):
        rows = rows[1:]
    columns = _columns(rows[0][1]) if rows else None
    if columns is None:
        seen = ", ".join(one_line(cell) for cell in rows[0][1][:8] if cell) if rows else ""
        told = gettext(
            "The first line has to name the columns, one of them “login” (or “username”, “email”), and “name” (or "
            "“first name” and “last name”). Here it says: {seen}."
        )
        return _unreadable(told.format(seen=seen))
    return _people(rows[1:], columns)


def _unreadable(text: str) -> Roster:
    return Roster((), (RosterProblem(0, text),))


def _decoded(data: bytes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    else:
        encodings = ["utf-8-sig", "cp1252"]
    if b"\0" in data and encodings[0] != "utf-16":
        return None
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _delimiter(text: str) -> str:
    """The separator that the first line holds most often; a guess from contents could be led astray by names."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0].removeprefix("\ufeff") if lines else ""
    if first.casefold().startswith("sep=") and len(first) > 4:
        return first[4]
    return max(",;\t|", key=first.count)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where in a row what stands; None: the list has no such column."""

    login: int
    names: tuple[int, ...]
    email: int | None
    section: int | None
    external_id: int | None
    role: int | None


def _columns(header: Sequence[str]) -> _Columns | None:
    """Columns by their names; None: there is no login, or no name."""
    names = [re.sub(r"[\s_]+", " ", cell.casefold()).strip() for cell in header]

    def place(wanted: Sequence[str]) -> int | None:
        return next((names.index(name) for name in wanted if name in names), None)

    login, name, first, last = place(_LOGIN), place(_NAME), place(_FIRST), place(_LAST)
    parts = (name,) if name is not None else (first, last)
    found = tuple(part for part in parts if part is not None)
    if login is None or not found:
        return None
    return _Columns(login, found, place(_EMAIL), place(_SECTION), place(_EXTERNAL_ID), place(_ROLE))


def _people(rows: Sequence[tuple[int, list[str]]], columns: _Columns) -> Roster:
    people: list[RosterLine] = []
    troubles: list[RosterProblem] = []
    seen: dict[tuple[str, str], int] = {}
    for line, cells in rows:
        if len(people) >= MAX_PEOPLE:
            most = gettext("More than {most} people; split the list.").format(most=number_text(MAX_PEOPLE))
            troubles.append(RosterProblem(line, most))
            break
        if max(columns.login, *columns.names) >= len(cells):
            few = counted(
                "Has %(num)s cell, too few for the columns that the first line names.",
                "Has %(num)s cells, too few for the columns that the first line names.",
                len(cells),
            )
            troubles.append(RosterProblem(line, few))
            continue
        one = _person(line, cells, columns)
        if isinstance(one, str):
            troubles.append(RosterProblem(line, one))
            continue
        twice = [(gettext("The login {it} stands in line {line} already."), "login", one.login)]
        if one.external_id is not None:
            twice.append((gettext("The id {it} stands in line {line} already."), "id", one.external_id))
        told = next(
            (
                text.format(it=one_line(it), line=seen[kind, it])
                for text, kind, it in twice
                if (kind, it) in seen
            ),
            None,
        )
        if told is not None:
            troubles.append(RosterProblem(line, told))
            continue
        seen |= {(kind, it): line for _, kind, it in twice}
        people.append(one)
    if not people and not troubles:
        troubles.append(RosterProblem(0, gettext("The list names its columns, and nobody below them.")))
    return Roster(tuple(people), tuple(troubles))


def _person(line: int, cells: Sequence[str], columns: _Columns) -> RosterLine | str:
    """One row, or what is wrong with it."""

    def cell(column: int | None) -> str:
        return cells[column] if column is not None and column < len(cells) else ""

    login = cell(columns.login).casefold()
    name = " ".join(part for part in (cell(column) for column in columns.names) if part)
    wrong = problem_with(login, name)
    if wrong is not None:
        return wrong
    # A login that is an address is an address all the same.
    own = columns.email if columns.email != columns.login else None
    email = (cell(own) or (login if _EMAIL_SHAPE.fullmatch(login) else "")).lower()
    if email and not (_EMAIL_SHAPE.fullmatch(email) and len(email) <= _MAX_EMAIL):
        return gettext("“{text}” is no mail address.").format(text=one_line(email))
    section, external_id, said = cell(columns.section), cell(columns.external_id), cell(columns.role)
    if max(len(section), len(external_id)) > MAX_DETAIL:
        return gettext("A section and an id have at most {most} characters.").format(most=MAX_DETAIL)
    role = _ROLES.get(said.casefold()) if said else Role.LEARNER
    if role is None:
        told = gettext("“{text}” is no role; write {several} or {last}.")
        return told.format(text=one_line(said), several=", ".join(COURSE_ROLES[:-1]), last=COURSE_ROLES[-1])
    return RosterLine(line, login, name, role, email or None, section or None, external_id or None)


def problem_with(login: str, name: str) -> str | None:
    """What is wrong with a login or a name, or None."""
    if not login:
        return gettext("Has no login.")
    if len(login) > MAX_LOGIN or len(name) > MAX_NAME:
        told = gettext("A login has at most {login} characters, a name at most {name}.")
        return told.format(login=MAX_LOGIN, name=MAX_NAME)
    if not _LOGIN_SHAPE.fullmatch(login):
        told = gettext("“{text}” is no login: no spaces, commas, slashes, quotation or angle marks.")
        return told.format(text=one_line(login))
    return gettext("Has no name.") if not name else None
