"""What the author of a course should know, though nothing of it is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from grader.catalog.courses.course_file import course_files
from grader.catalog.tasks.task_folders import find_tasks
from grader.catalog.tasks.translations import translation_notes
from grader.model.course import Course
from grader.model.task import Task


def course_notes(course: Course, tasks: Iterable[Task]) -> tuple[str, ...]:
    """Tasks that no course sets, and translations that lag behind or are missing."""
    return (*_unset(course), *translation_notes(tasks))


def _unset(course: Course) -> Iterable[str]:
    """Several courses may share a folder: what any of them sets is set."""
    named = {item.task for item in course.items}
    for path in course_files():
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8")).get("tasks")
        except (OSError, ValueError):
            continue  # whoever checks that course is told
        for entry in entries if isinstance(entries, list) else ():
            named.add(str(entry.get("task")) if isinstance(entry, dict) else "")
    for name in sorted(set(find_tasks()) - named):
        lines = f'`[[tasks]]`, `task = "{name}"` and a `weight`'
        yield f"{name}/ is a task that no course sets. Three lines in {course.path.name} would: {lines}."
