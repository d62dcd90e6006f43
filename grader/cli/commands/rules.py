"""List every rule: code, severity, what it finds."""

from __future__ import annotations

import argparse

NAME = "rules"
ORDER = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`grader rules` takes no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Print the table of rules."""
    from grader.checks.rule import load_rules
    from grader.cli.printing import emit_json, stdout_console
    from grader.errors import EXIT_ACCEPTED

    rules = load_rules()
    if args.json:
        emit_json(
            [
                {
                    "code": r.code,
                    "name": r.name,
                    "severity": r.severity.value,
                    "title": r.title,
                    "source": r.check_source is not None,
                    "run": r.check_trace is not None,
                }
                for r in rules
            ]
        )
        return EXIT_ACCEPTED
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("code", "severity", "seen in", "what it finds"):
        table.add_column(heading)
    for r in rules:
        seen = " + ".join(w for w, half in (("text", r.check_source), ("run", r.check_trace)) if half)
        table.add_row(r.code, r.severity.value, seen, r.title)
    stdout_console().print(table)
    return EXIT_ACCEPTED
