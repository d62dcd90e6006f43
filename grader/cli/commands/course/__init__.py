"""Prove a whole course, or play its deadline before it comes."""

from __future__ import annotations

import argparse

from grader.cli.command import add_subcommands

NAME = "course"
ORDER = 63


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course`: those of its subcommands."""
    add_subcommands(parser, __name__)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says."""
    code: int = args.act(args)
    return code
