"""Print a page of the documentation, or list the pages; they are those of the version that is installed.

    grader docs
    grader docs task-authors
    grader docs task.toml

`task.toml` and `course.toml` are pages, too: every key of these files, and what it means.
"""

from __future__ import annotations

import argparse

NAME = "docs"
ORDER = 48


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader docs`."""
    parser.add_argument("page", metavar="PAGE", nargs="?", help="its name; default: all names")


def run(args: argparse.Namespace) -> int:
    """Print a page as it is written, or the names."""
    import sys

    from pydantic import BaseModel

    from grader.catalog.courses.course_schema import CourseTable
    from grader.catalog.formats.file_format import format_page
    from grader.catalog.tasks.task_schema import TaskFile
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.settings import BUILT_IN

    files = {path.stem: path for path in sorted((BUILT_IN / "docs").glob("*.md")) if path.stem != "README"}
    formats: dict[str, type[BaseModel]] = {"course.toml": CourseTable, "task.toml": TaskFile}
    names = [*files, *formats]
    if args.page is None:
        if args.json:
            emit_json({"schema": 1, "pages": names})
        else:
            print("\n".join(names))
        return EXIT_ACCEPTED
    if args.page not in names:
        raise UsageError(f"there is no page {args.page!r}; there is {', '.join(names)}")
    file = files.get(args.page)
    text = (
        file.read_text(encoding="utf-8") if file is not None else format_page(args.page, formats[args.page])
    )
    if args.json:
        emit_json({"schema": 1, "page": args.page, "text": text})
    else:
        sys.stdout.write(text)
    return EXIT_ACCEPTED
