"""Show one rule's page (what it finds, why it matters, what to write instead), or that of an explained ending."""

from __future__ import annotations

import argparse

NAME = "rule"
ORDER = 51


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader rule`."""
    parser.add_argument("code", metavar="CODE", help="such as DATA002, or an ending such as port_in_use")


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    import difflib

    from grader.checks.diagnosis import load_explanations
    from grader.checks.rule import load_rules
    from grader.checks.source.script import SYNTAX
    from grader.checks.syntax_page import PAGE
    from grader.cli.printing import emit_json, stdout_console
    from grader.errors import EXIT_ACCEPTED, UsageError

    rules = {r.code: r for r in load_rules()}
    rule = rules.get(args.code.upper())
    ending = next((e for e in load_explanations() if e.id == args.code.lower()), None)
    if rule is None and ending is not None:
        return _show(ending.id, ending.page, as_json=args.json)
    if args.code.upper() == SYNTAX:
        return _show(SYNTAX, PAGE, as_json=args.json)
    if rule is None:
        known = [*rules, *(e.id for e in load_explanations())]
        given = args.code.lower() if "_" in args.code else args.code.upper()
        near = ", ".join(difflib.get_close_matches(given, known, n=3)) or ", ".join(rules)
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


def _show(name: str, page: str, *, as_json: bool) -> int:
    from rich.markdown import Markdown

    from grader.cli.printing import emit_json, stdout_console
    from grader.errors import EXIT_ACCEPTED

    if as_json:
        emit_json({"id": name, "page": page})
        return EXIT_ACCEPTED
    console = stdout_console()
    console.print(f"[bold]{name}[/bold]\n")
    console.print(Markdown(page))
    return EXIT_ACCEPTED
