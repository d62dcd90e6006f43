"""Files that a command writes beside what it prints: `--junit FILE`, `--markdown FILE` and their like.

One option per format, the same for every command that can fill it. Knows no format and judges nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.model.grade import Grade

_HELP = {
    "gradescope": "write a results.json as Gradescope reads it, too",
    "junit": "write the outcome as JUnit XML, too",
    "markdown": "write a summary in Markdown, too, such as CI jobs show",
    "sarif": "write the findings as SARIF 2.1.0, too, for code-scanning viewers",
}


def add_export_arguments(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Options of these formats, in the order given."""
    for name in formats:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=_HELP[name])


def check_exports(args: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything takes time.

    Raises:
        UsageError: a folder stands where a file is to be written, a folder for it cannot be made, or two exports
            would overwrite each other.
    """
    from grader.errors import UsageError

    seen: dict[Path, str] = {}
    for name, path in _asked(args).items():
        if path.is_dir():
            raise UsageError(f"--{name} {path}: that is a folder; name a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--{name} {path}: no file can be written there ({error.strerror})") from None
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise UsageError(f"--{other} and --{name} name the same file, {path}")


def write_exports(args: argparse.Namespace, makers: Mapping[str, Callable[[], str]]) -> None:
    """Write the files that were asked for.

    Args:
        args: the command line.
        makers: format → what makes its text; only those that were asked for are called.

    Raises:
        UsageError: a file cannot be written.
    """
    from grader.errors import UsageError

    for name, path in _asked(args).items():
        try:
            path.write_text(makers[name](), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--{name} {path}: it cannot be written ({error.strerror})") from None


def grade_exports(grade: Grade, *, staff: bool) -> dict[str, Callable[[], str]]:
    """What makes each format of one attempt; Gradescope's file is the learner's, whoever asks."""
    from grader.report.audience import Audience
    from grader.report.gradescope import to_gradescope
    from grader.report.junit import grade_to_junit
    from grader.report.markdown import grade_to_markdown

    audience = Audience.STAFF if staff else Audience.LEARNER
    return {
        "gradescope": lambda: to_gradescope(grade),
        "junit": lambda: grade_to_junit(grade, audience),
        "markdown": lambda: grade_to_markdown(grade, audience),
    }


def _asked(args: argparse.Namespace) -> dict[str, Path]:
    return {name: path for name in _HELP if (path := getattr(args, name, None)) is not None}
