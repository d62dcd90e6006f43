"""Show one rule's page: what it finds, why it matters, an example, what to write instead."""

from __future__ import annotations

import argparse

NAME = "rule"
ORDER = 51


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader rule`."""
    parser.add_argument("code", metavar="CODE", help="such as DATA002")


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    import difflib

    from grader.checks.rule import load_rules
    from grader.cli.printing import emit_json, stdout_console
    from grader.errors import EXIT_ACCEPTED, UsageError

    rules = {r.code: r for r in load_rules()}
    rule = rules.get(args.code.upper())
    if rule is None:
        near = ", ".join(difflib.get_close_matches(args.code.upper(), rules, n=3)) or ", ".join(rules)
        raise UsageError(
            f"there is no rule {args.code!r}; did you mean {near}? `grader rules` lists them all"
        )
    if args.json:
        emit_json({"code": rule.code, "name": rule.name, "severity": rule.severity.value, "page": rule.page})
        return EXIT_ACCEPTED
    from rich.markdown import Markdown

    console = stdout_console()
    console.print(f"[bold]{rule.code}[/bold] {rule.name}  ({rule.severity.value})\n")
    console.print(Markdown(rule.page))
    return EXIT_ACCEPTED
