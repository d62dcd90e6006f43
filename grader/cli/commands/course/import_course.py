"""Bring a course into the service: from a folder, an archive (.tar.gz, .tar, .zip) or a Git address.

Everything is read and checked before anything is taken. The course's tasks are kept in the file store at their
versions, so that pages and workers need no folder of them. A course that came before and comes again, newer, changes
nothing by itself: new versions wait on the settings pages of its tasks, and new tasks are drafts. Scorers and rules of
a course are programs that workers run: take courses only of those whom you trust as much.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

NAME = "import"
ORDER = 15


def _moment(text: str) -> datetime:
    """A date, or a date and a time, UTC where it names no zone.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no date; write 2027-03-01") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course import`."""
    parser.add_argument(
        "source", metavar="SOURCE", help="folder, archive, or https://, ssh:// or file:// address"
    )
    parser.add_argument(
        "--revision", metavar="NAME", default="", help="branch, tag or commit of a Git address"
    )
    parser.add_argument("--file", metavar="NAME", default="course.toml", help="the course file (course.toml)")
    parser.add_argument("--name", help="hold it under another short name than its file says")
    parser.add_argument(
        "--begins", type=_moment, metavar="DATE", help="the first day, from which dates count (now)"
    )


def run(args: argparse.Namespace) -> int:
    """Take it, say what came of it, and return 0."""
    from grader.catalog.courses.course_sources import course_from
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, InfraError
    from grader.settings import settings
    from grader.store import schema
    from grader.store.courses.course_import import take_course
    from grader.store.database import Store
    from grader.store.files import open_files

    store = Store(settings().database)
    try:
        if (problem := schema.status(store).problem) is not None:
            raise InfraError(problem)
        files = open_files(store, settings().file_store, settings().state_dir / "files")
        with course_from(args.source, revision=args.revision, file=args.file) as found:
            taken = take_course(store, files, found, name=args.name, begins_at=args.begins)
    finally:
        store.close()
    if args.json:
        emit_json({"schema": 1, "course": taken.name, "from": found.told, "new": taken.new, **taken.told()})
        return EXIT_ACCEPTED
    print(f"{taken.name}, from {found.told}")
    for text, names in taken.lines():
        print(f"{text}: {', '.join(names)}")
    return EXIT_ACCEPTED
