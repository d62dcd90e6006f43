"""List every rule: code, severity, what it finds; or every known mistake and the rules that see it."""

from __future__ import annotations

import argparse

NAME = "rules"
ORDER = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader rules`."""
    parser.add_argument(
        "--mistakes",
        action="store_true",
        help="list the catalogue of mistakes instead, with what sees each, or why nothing can",
    )


def run(args: argparse.Namespace) -> int:
    """Print the table of rules, or of mistakes."""
    if args.mistakes:
        return _mistakes(as_json=args.json)
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
                    "run": r.check_run is not None,
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
        seen = " + ".join(w for w, half in (("text", r.check_source), ("run", r.check_run)) if half)
        table.add_row(r.code, r.severity.value, seen, r.title)
    console = stdout_console()
    console.print(table)
    from grader.checks.diagnosis import load_explanations

    endings = Table(box=None, pad_edge=False)
    for heading in ("explanation", "why a run ended badly"):
        endings.add_column(heading)
    for one in sorted(load_explanations(), key=lambda e: e.id):
        endings.add_row(one.id, one.title)
    console.print()
    console.print(endings)
    return EXIT_ACCEPTED


def _mistakes(*, as_json: bool) -> int:
    from dataclasses import asdict

    from grader.checks.mistakes import load_mistakes
    from grader.cli.printing import emit_json, stdout_console
    from grader.errors import EXIT_ACCEPTED

    mistakes = load_mistakes()
    if as_json:
        emit_json([asdict(m) for m in mistakes])
        return EXIT_ACCEPTED
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("", "mistake", "severity", "seen by", "what is wrong"):
        table.add_column(heading, justify="right" if not heading else "left")
    for m in mistakes:
        seen = " ".join((*m.codes, *m.diagnoses)) or "out of reach"
        table.add_row(str(m.number), m.name, m.severity, seen, m.out_of_reach or m.wrong)
    stdout_console().print(table)
    return EXIT_ACCEPTED
