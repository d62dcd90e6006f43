"""Print a CI workflow that proves a course on every commit, to be copied into the course's repository.

    grader workflow github > .github/workflows/course.yml
    grader workflow gitlab > .gitlab-ci.yml

It installs what requirements.txt pins, verifies all reference solutions on several machines, keeps outcomes that are
known, proves the course as a whole, and shows findings, test results, a summary and the reports where the host shows
them. `grader new course` writes both.
"""

from __future__ import annotations

import argparse

NAME = "workflow"
ORDER = 61
_HOSTS = ("github", "gitlab")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader workflow`."""
    parser.add_argument("host", metavar="HOST", choices=_HOSTS, help=f"where CI runs: {' or '.join(_HOSTS)}")


def run(args: argparse.Namespace) -> int:
    """Print the workflow file."""
    import sys

    from grader.catalog.new_course import workflow
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED

    text = workflow(args.host)
    if args.json:
        emit_json({"schema": 1, "host": args.host, "text": text})
    else:
        sys.stdout.write(text)
    return EXIT_ACCEPTED
