"""Parsing and printing: turn a command line into one call below, and its outcome into text and an exit code.

Findings and results go to standard output, progress and complaints to standard error. Never judges anything.
Importing this must stay cheap: commands import what they need when they run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from grader import __version__
from grader.cli.command import add_command, load_commands
from grader.cli.output import print_to_nobody, unread_is_no_fault
from grader.errors import EXIT_USAGE, GraderError
from grader.plugins.garbage import leave_to_the_system

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells show it."""


def command_modules(typed: str = "") -> tuple[ModuleType, ...]:
    """All commands, in the order of their `ORDER`; the typed one alone, where there is one of that name."""
    return load_commands("grader.cli.commands", typed)


def build_parser(typed: str = "") -> argparse.ArgumentParser:
    """The whole command line, or its part for the command that is typed: all together take longer than most."""
    parser = argparse.ArgumentParser(
        prog="grader",
        description="Judge multi-GPU PyTorch training scripts by a real multi-rank run.",
        epilog="Exit codes: 0 accepted, 1 not accepted, 2 usage, 3 the task's author, 4 the machine or the grader.",
    )
    parser.add_argument("--version", action="version", version=f"grader {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in command_modules(typed):
        add_command(subparsers, module).set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a traceback here is a bug of ours."""
    leave_to_the_system()
    argv = sys.argv[1:] if argv is None else argv
    try:
        parser = build_parser(argv[0] if argv else "")
    except GraderError as error:
        return _complain(error, as_json="--json" in argv)
    args = parser.parse_args(argv)
    try:
        code: int = args.run(args)
        with unread_is_no_fault():
            pass  # what is still in the buffer
    except GraderError as error:
        return _complain(error, as_json=args.json)
    except ModuleNotFoundError as error:
        from grader.cli.extras import missing_extra

        return _complain(missing_extra(error), as_json=args.json)
    except KeyboardInterrupt:
        print("\ninterrupted; nothing is left running", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; there is nobody left to tell.
        print_to_nobody()
        return EXIT_USAGE
    return code


def _complain(error: GraderError, *, as_json: bool) -> int:
    if as_json:
        import json

        print(
            json.dumps(
                {"schema": 1, "error": {"kind": type(error).__name__, "message": str(error)}}, indent=2
            )
        )
    print(f"grader: {error}", file=sys.stderr)
    return error.exit_code
