"""The shape of a command, and how commands are found: by folder, without a list.

A command is one module below `cli/commands/`; a folder of subcommands lies beside it and has the same shape. It holds

    NAME = "lint"                                                       # as typed
    ORDER = 20                                                          # place in the list of commands
    def add_arguments(parser: argparse.ArgumentParser) -> None: ...
    def run(args: argparse.Namespace) -> int: ...                       # the exit code

and a docstring that is its help. Commands import what they need when they run.
"""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any

from grader.plugins.loader import load, load_one, taken_twice
from grader.plugins.shape import Constant, Function, Shape, of_type
from grader.plugins.sources import Sources, plugin_files

SHAPE = Shape(
    what="a command",
    constants=(
        Constant("NAME", 'NAME = "lint"', of_type(str, "a text")),
        Constant("ORDER", "ORDER = 20", of_type(int, "a whole number")),
    ),
    functions=(
        Function("add_arguments", {"parser": "ArgumentParser"}, ("None",)),
        Function("run", {"args": "Namespace"}, ("int",)),
    ),
    file_example="lint.py",
)


def load_commands(package: str, typed: str = "") -> tuple[ModuleType, ...]:
    """All commands of a package, in their order; the typed one alone, where a module of this name is it."""
    sources = Sources(package)
    for file in plugin_files(sources):
        if file.name == typed and (plugin := load_one(file, SHAPE)).get("NAME") == typed:
            return (plugin.module,)
    found = load(sources, SHAPE, lambda all_: taken_twice(all_, "name", lambda one: str(one.get("NAME"))))
    return tuple(sorted((plugin.module for plugin in found), key=lambda module: int(module.ORDER)))


def add_command(
    parsers: argparse._SubParsersAction[argparse.ArgumentParser], module: ModuleType, **json_option: Any
) -> argparse.ArgumentParser:
    """Its parser, with its help, its arguments and `--json`, which every command has."""
    doc = (module.__doc__ or "").strip()
    parser = parsers.add_parser(
        module.NAME,
        help=doc.splitlines()[0].rstrip("."),
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--json", action="store_true", help="machine-readable result on standard output", **json_option
    )
    module.add_arguments(parser)
    return parser


def add_subcommands(parser: argparse.ArgumentParser, package: str) -> None:
    """Give a command subcommands: the modules beside it, with the same NAME, ORDER, add_arguments and run as commands.

    Args:
        parser: the command's; what it parses has `act`, the `run` of the subcommand.
        package: the command's name as a package.
    """
    actions = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for module in load_commands(package):
        # Suppressed, so that `grader course --json check` and `grader course check --json` mean the same.
        add_command(actions, module, default=argparse.SUPPRESS).set_defaults(act=module.run)
