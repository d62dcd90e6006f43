"""The console that results are printed on; it outlives whoever reads it."""

from __future__ import annotations

from rich.console import Console

from grader.cli.output import print_to_nobody


class OutputConsole(Console):
    """A console on standard output; by itself `rich` ends the process with 1, which here means "not accepted"."""

    def on_broken_pipe(self) -> None:
        """What is still printed goes nowhere."""
        print_to_nobody()
