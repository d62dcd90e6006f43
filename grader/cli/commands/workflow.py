"""Print a CI workflow that proves the tasks on every commit, to be copied into a repository of tasks.

    grader workflow github > .github/workflows/tasks.yml
    grader workflow gitlab > .gitlab-ci.yml

It installs what the lock file pins, verifies all reference solutions on several machines, keeps outcomes that are
known, and shows findings, test results and a summary where the host shows them.
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
    from importlib import resources

    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED

    text = (resources.files("grader") / "workflows" / f"{args.host}.yml").read_text(encoding="utf-8")
    if args.json:
        emit_json({"schema": 1, "host": args.host, "text": text})
    else:
        sys.stdout.write(text)
    return EXIT_ACCEPTED
