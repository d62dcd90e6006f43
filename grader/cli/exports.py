"""Files that a command writes beside what it prints: `--junit FILE`, `--markdown FILE` and their like.

One option per format, the same for every command that can fill it. Knows no format and judges nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from grader.cli.files_to_write import make_folder_for
from grader.report.export import Export, load_exports

FromWhat = Callable[[Export], Callable[..., str] | None]
OF_GRADE: FromWhat = attrgetter("of_grade")
OF_VERIFICATION: FromWhat = attrgetter("of_verification")
OF_LINT: FromWhat = attrgetter("of_lint")


def add_export_arguments(parser: argparse.ArgumentParser, from_what: FromWhat) -> None:
    """Options of all formats that can be made from what the command has."""
    for export in load_exports():
        if from_what(export) is not None:
            parser.add_argument(f"--{export.name}", type=Path, metavar="FILE", help=export.help)


def check_exports(args: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything takes time.

    Raises:
        UsageError: a folder stands where a file is to be written, a folder for it cannot be made, or two exports
            would overwrite each other.
    """
    from grader.errors import UsageError

    seen: dict[Path, str] = {}
    for name, path in _asked(args).items():
        make_folder_for(path, f"--{name}")
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise UsageError(f"--{other} and --{name} name the same file, {path}")


def write_exports(args: argparse.Namespace, from_what: FromWhat, *outcome: Any) -> None:
    """Write the files that were asked for.

    Args:
        args: the command line.
        from_what: which of a format's functions makes the text; outcome: what it takes.

    Raises:
        UsageError: a file cannot be written.
    """
    from grader.errors import UsageError

    asked = _asked(args)
    for export in load_exports():
        path, make = asked.get(export.name), from_what(export)
        if path is None or make is None:
            continue
        try:
            path.write_text(make(*outcome), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--{export.name} {path}: it cannot be written ({error.strerror})") from None


def _asked(args: argparse.Namespace) -> dict[str, Path]:
    return {one.name: path for one in load_exports() if (path := getattr(args, one.name, None)) is not None}
