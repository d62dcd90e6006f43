"""Fetch the report of a judged attempt from the service that one is signed in to.

As text for the terminal, as JSON of schema 1 (--json), or as the HTML file that the service shows (--html, or --out
with a name that ends so).
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
    """Fetch and print or write; 0 when it is there."""
    from grader.cli import remote
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.html and args.json:
        raise UsageError("--html or --json: one of them")
    as_html = args.html or (not args.json and args.out is not None and args.out.suffix in (".html", ".htm"))
    with remote.service() as service:
        if as_html:
            text = service.report(args.attempt)
        else:
            text = service.grade(args.attempt)
    if as_html or args.json or args.out is not None:
        remote.put(text, args.out)
    else:
        remote.print_grade(text)
    return EXIT_ACCEPTED
