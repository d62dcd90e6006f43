"""Parsing and printing: turn a command line into one call below, and its outcome into text and an exit code.

Findings and results go to standard output, progress and complaints to standard error. Never judges anything.
Importing this must stay cheap: commands import what they need when they run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from grader import __version__
from grader.cli import commands
from grader.errors import EXIT_USAGE, GraderError

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells show it."""


def command_modules() -> tuple[ModuleType, ...]:
    """All commands, found by folder, in the order of their `ORDER`."""
    found = [
        importlib.import_module(f"{commands.__name__}.{info.name}")
        for info in pkgutil.iter_modules(commands.__path__)
    ]
    return tuple(sorted(found, key=lambda module: module.ORDER))


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="grader",
        description="Judge multi-GPU PyTorch training scripts by a real multi-rank run.",
        epilog="Exit codes: 0 accepted, 1 not accepted, 2 usage, 3 the task's author, 4 the machine or the grader.",
    )
    parser.add_argument("--version", action="version", version=f"grader {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in command_modules():
        doc = (module.__doc__ or "").strip()
        sub = subparsers.add_parser(
            module.NAME,
            help=doc.splitlines()[0].rstrip("."),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--json", action="store_true", help="machine-readable result on standard output")
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a traceback here is a bug of ours."""
    args = build_parser().parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except GraderError as error:
        return _complain(args, error, error.exit_code)
    except KeyboardInterrupt:
        print("\ninterrupted; nothing is left running", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_USAGE
    return code


def _complain(args: argparse.Namespace, error: GraderError, code: int) -> int:
    if args.json:
        print(
            json.dumps(
                {"schema": 1, "error": {"kind": type(error).__name__, "message": str(error)}}, indent=2
            )
        )
    print(f"grader: {error}", file=sys.stderr)
    return code
