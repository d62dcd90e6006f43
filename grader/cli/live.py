"""Signs of life on standard error while something long runs; results never pass through here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from grader.settings import in_notebook

if TYPE_CHECKING:
    from grader.model.verify_case import VerifyCase
    from grader.promises.course_proof import SkeletonCase
    from grader.run.runtime import Progress


class LiveView:
    """A spinner with phase, steps per rank and the last printed line.

    Where there is no terminal, plain lines: the phases of what is judged alone, and of many each that starts.
    """

    def __init__(self, stream: TextIO, total: int | None = None) -> None:
        """`total`: cases and skeletons to come, where that is known: a bar shows how many are done."""
        self._total = total
        self._starting = Lock()
        self._running: list[str] = []
        self._met = 0
        self.console = Console(file=stream, highlight=False, force_terminal=False if in_notebook() else None)
        known: tuple[ProgressColumn, ...] = (
            (BarColumn(bar_width=20), MofNCompleteColumn()) if total is not None else ()
        )
        self._bar = Bar(
            SpinnerColumn(),
            *known,
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._row = self._bar.add_task("starting", total=total)
        self._phase = ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else for a moment."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def start(self, name: str) -> None:
        """Say which of many starts now, and the how manieth it is."""
        with self._starting:
            self._running.append(name)
            self._met += 1
            if not self.console.is_terminal:
                self.console.print(Text(f"{self._met} of {self._total}  {name}"), soft_wrap=True)

    def progress(self, sign: Progress) -> None:
        """Show one sign of life."""
        if not self.console.is_terminal:
            if sign.phase != self._phase and not self._running:
                self.console.print(Text(f"· {sign.phase}"))
        else:
            parts = [*self._running, sign.phase]
            if sign.steps:
                parts.append("steps " + " ".join(f"{rank}:{n}" for rank, n in enumerate(sign.steps)))
            if sign.line:
                parts.append(sign.line[: max(20, self.console.width - 60)])
            # Text, not markup: the line was printed by a submission and may hold brackets.
            self._bar.update(self._row, description=Text(" · ".join(parts)).markup)
        self._phase = sign.phase

    def note(self, line: str) -> None:
        """Say something that is no case and no sign of life."""
        self.console.print(Text(line))

    def case(self, case: VerifyCase) -> None:
        """Say how one case of a verification went, as soon as it is known."""
        mark, style = ("–", "yellow") if case.skipped else ("✓", "green") if case.ok else ("✗", "red")
        line = Text(f"{mark} ", style=style)
        line.append(f"{case.name}  {case.verdict or 'skipped'}  {' '.join(case.codes)}  {case.seconds:.1f} s")
        self._over(case.name)
        self.console.print(line)
        if not case.ok:
            self.console.print(Text(f"  {case.message}", style="red"))
            if case.way_on:
                self.console.print(Text(f"  {case.way_on}"), soft_wrap=True)

    def skeleton(self, case: SkeletonCase) -> None:
        """Say how a task's starting point did."""
        self._over(case.name)
        line = Text("✗ " if case.problem else "✓ ", style="red" if case.problem else "green")
        line.append(f"{case.name}  {case.verdict}  alone: {case.alone}")
        self.console.print(line)
        if case.problem:
            self.console.print(Text(f"  {case.problem}", style="red"))

    def _over(self, name: str) -> None:
        with self._starting:
            if name in self._running:
                self._running.remove(name)
            else:  # nothing was run for it
                self._met += 1
        self._bar.advance(self._row)
