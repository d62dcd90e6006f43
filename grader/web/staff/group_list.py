"""A list of who is in which group, as a CSV file with the columns `login` and `group`. Asks no database."""

from __future__ import annotations

import csv
import io

from grader.errors import UsageError
from grader.report.safe_text import one_line
from grader.translation import gettext

MAX_BYTES = 1 << 20


def read_group_list(data: bytes) -> dict[str, str]:
    """The name of each login's group.

    Raises:
        UsageError: it is no such list; the line is told.
    """
    if len(data) > MAX_BYTES:
        told = gettext("the file has more than {most} MiB; a list of groups is far smaller")
        raise UsageError(told.format(most=MAX_BYTES >> 20))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(gettext("the file is no UTF-8 text; save the sheet as “CSV UTF-8”")) from None
    first = text.partition("\n")[0]
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    lines.fieldnames = [name.strip().casefold() for name in lines.fieldnames or ()]
    if not {"login", "group"} <= set(lines.fieldnames):
        raise UsageError(gettext("the first line has to name the columns “login” and “group”"))
    found: dict[str, str] = {}
    try:
        for line in lines:
            login, group = (((line[name] or "").strip()) for name in ("login", "group"))
            if not login and not group:
                continue
            if not login or not group:
                told = gettext("line {line} has no group") if login else gettext("line {line} has no login")
                raise UsageError(told.format(line=lines.line_num))
            if found.setdefault(login.casefold(), group) != group:
                told = gettext("line {line}: {login} is in two groups")
                raise UsageError(told.format(line=lines.line_num, login=one_line(login)))
    except csv.Error as error:
        told = gettext("line {line} cannot be read as CSV: {problem}")
        raise UsageError(told.format(line=lines.line_num, problem=error)) from None
    if not found:
        raise UsageError(gettext("the list names its columns, and nobody below them"))
    return found
