"""Read scripts and name what their text gives away; nothing is executed and torch is not needed.

Each FILE is a script of its own, or a folder with train.py and helper modules. Exit code 1 when anything of severity
error was found.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "lint"
ORDER = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader lint`."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="scripts or folders")


def run(args: argparse.Namespace) -> int:
    """Lint every file and return 1 if one has an error."""
    from grader.catalog.submissions import read_submission
    from grader.checks.lint import lint
    from grader.cli.printing import print_lint
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.model.finding import Severity

    results = []
    for file in args.files:
        submission = read_submission(file)
        results.append((file, submission, lint(submission)))
    print_lint(results, as_json=args.json)
    bad = any(f.severity is Severity.ERROR for _, _, findings in results for f in findings)
    return EXIT_NOT_ACCEPTED if bad else EXIT_ACCEPTED
