"""Print a CI workflow that proves a course on every commit, or a part that any workflow may use, to be copied.

    grader workflow github > .github/workflows/course.yml
    grader workflow gitlab > .gitlab-ci.yml
    grader workflow github-action > .github/actions/grader/action.yml
    grader workflow gitlab-component > templates/grader.yml

The workflow installs what requirements.txt pins, verifies all reference solutions on several machines, keeps outcomes
that are known, proves the course as a whole, and shows findings, test results, a summary and the reports where the host
shows them; `grader new course` writes both. The action and the component hand one script in to a service and wait for
its verdict, or verify a course.
"""

from __future__ import annotations

import argparse

NAME = "workflow"
ORDER = 61
_KINDS = ("github", "gitlab", "github-action", "gitlab-component")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader workflow`."""
    parser.add_argument("kind", metavar="KIND", choices=_KINDS, help=f"which one: {', '.join(_KINDS)}")


def run(args: argparse.Namespace) -> int:
    """Print the workflow file."""
    import sys

    from grader.catalog.courses.new_course import workflow
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED

    text = workflow(args.kind)
    if args.json:
        emit_json({"schema": 1, "host": args.kind, "text": text})
    else:
        sys.stdout.write(text)
    return EXIT_ACCEPTED
