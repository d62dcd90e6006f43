"""Fetch the report of a judged attempt from the service that one is signed in to.

As text for the terminal, as JSON (--json), or as the HTML file that the service shows (--html, or --out with a name
that ends so). All of them say what counts: with lateness, and as an instructor set it. In JSON that is `verdict` and
`points`, and the judge's own are `judged_verdict` and `judged_points`. The exit code is that of `grader grade`: 0
accepted, 1 not accepted, 4 the grader itself failed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "report"
ORDER = 36


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader report`."""
    parser.add_argument("attempt", metavar="ATTEMPT", type=int, help="its number, as `grader submit` says it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it here instead of printing it")
    parser.add_argument("--html", action="store_true", help="the page with its pictures, as one file")


def run(args: argparse.Namespace) -> int:
    """Fetch and print or write, and return the exit code of the verdict that counts."""
    from grader.cli import remote, remote_grade
    from grader.errors import UsageError

    if args.html and args.json:
        raise UsageError("--html or --json: one of them")
    as_html = args.html or (not args.json and args.out is not None and args.out.suffix in (".html", ".htm"))
    with remote.service() as service:
        if as_html:
            text = service.report(args.attempt)
        else:
            text = service.grade(args.attempt)
        attempt = service.attempt(args.attempt)
    if args.json:
        text = remote_grade.grade_json(text, attempt)
    if as_html or args.json or args.out is not None:
        remote.put(text, args.out)
    else:
        remote_grade.print_grade(text, attempt)
        remote.print_question(service, attempt)
    return remote_grade.exit_code(attempt)
