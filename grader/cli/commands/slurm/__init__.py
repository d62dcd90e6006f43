"""Judge on a Slurm cluster: workers as jobs, as many as the queue needs."""

# Each subcommand is a module beside this one, found by folder, with the same NAME, ORDER, add_arguments and run that a
# command has.

from __future__ import annotations

import argparse

from grader.cli.command import add_command, load_commands

NAME = "slurm"
ORDER = 83


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader slurm`: those of its subcommands."""
    actions = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for module in load_commands(__name__):
        # Suppressed, so that `grader slurm --json check` and `grader slurm feed --json` mean the same.
        add_command(actions, module, default=argparse.SUPPRESS).set_defaults(act=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code
