"""Prove a course, or play its deadline: `grader course --help` lists what there is.

Each subcommand is a module beside this one, found by folder, with the same NAME, ORDER, add_arguments and run that a
command has.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from types import ModuleType

NAME = "course"
ORDER = 63


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course`: those of its subcommands."""
    actions = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for module in _subcommands():
        doc = (module.__doc__ or "").strip()
        sub = actions.add_parser(
            module.NAME,
            help=doc.splitlines()[0].rstrip("."),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Suppressed, so that `grader course --json check` and `grader course check --json` mean the same.
        sub.add_argument(
            "--json",
            action="store_true",
            default=argparse.SUPPRESS,
            help="machine-readable result on standard output",
        )
        module.add_arguments(sub)
        sub.set_defaults(act=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code


def _subcommands() -> tuple[ModuleType, ...]:
    found = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return tuple(sorted(found, key=lambda module: module.ORDER))
