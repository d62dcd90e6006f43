"""Prove a whole course, or play its deadline before it comes."""

# Each subcommand is a module beside this one, found by folder, with the same NAME, ORDER, add_arguments and run that a
# command has.

from __future__ import annotations

import argparse

from grader.cli.command import add_command, load_commands

NAME = "course"
ORDER = 63


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course`: those of its subcommands."""
    actions = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for module in load_commands(__name__):
        # Suppressed, so that `grader course --json check` and `grader course check --json` mean the same.
        add_command(actions, module, default=argparse.SUPPRESS).set_defaults(act=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code
