"""A statement in other languages: `statement.de.md` beside `statement.md`, with the original that it was made from.

The original decides: a language that a task lacks is told in English, and a translation whose original has changed
since says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from grader.model.task import Task, Translation

_NAME = re.compile(r"statement\.([a-z]{2,3})\.md")
_MADE_FROM = "<!-- of statement.md {} -->"


def translations_in(folder: Path) -> tuple[Translation, ...]:
    """The translations of a task's statement, by language."""
    first = _first_line(folder)
    found = []
    for path in sorted(folder.glob("statement.*.md")):
        if (match := _NAME.fullmatch(path.name)) is None:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        begin, _, rest = text.partition("\n")
        is_marked = begin.startswith("<!-- of statement.md ")
        found.append(Translation(match[1], rest if is_marked else text, begin.strip() != first))
    return tuple(found)


def translation_notes(tasks: Iterable[Task]) -> tuple[str, ...]:
    """What an author should know: translations whose original has changed, and tasks that lack a course's language."""
    tasks = tuple(tasks)
    notes = [
        f"{task.name}/statement.{one.language}.md was made from another statement.md than today's. Bring it up to "
        f"date; its first line is then `{_first_line(task.folder)}`."
        for task in tasks
        for one in task.translations
        if one.stale
    ]
    for language in sorted({one.language for task in tasks for one in task.translations}):
        lacking = [t.name for t in tasks if language not in (one.language for one in t.translations)]
        if lacking:
            notes.append(
                f"Without a statement.{language}.md, and told in English instead: {', '.join(lacking)}."
            )
    return tuple(notes)


def _first_line(folder: Path) -> str:
    """What the first line of a translation says that was made from the statement as it is."""
    text = (folder / "statement.md").read_bytes()
    return _MADE_FROM.format(hashlib.sha256(text).hexdigest()[:12])
