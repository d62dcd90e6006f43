"""Make of a task what another platform runs, without a service of ours."""

from __future__ import annotations

import argparse

from grader.cli.command import add_subcommands

NAME = "export"
ORDER = 62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader export`: those of its subcommands."""
    add_subcommands(parser, __name__)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code
