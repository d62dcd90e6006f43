"""Judge on a Slurm cluster: workers as jobs, as many as the queue needs."""

from __future__ import annotations

import argparse

from grader.cli.command import add_subcommands

NAME = "slurm"
ORDER = 83


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader slurm`: those of its subcommands."""
    add_subcommands(parser, __name__)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code
