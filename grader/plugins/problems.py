"""What is wrong with plug-ins, and whose it is to mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.errors import InfraError, TaskError


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """One thing to mend.

    Attributes:
        path: the file; line: 1-based, 0 where the file as a whole is meant.
        text: what is wrong and what to write instead.
        of_course: the file is the course's own.
    """

    path: Path
    line: int
    text: str
    of_course: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


def refuse(problems: Sequence[PluginProblem]) -> None:
    """Raise one error that names every problem; nothing where there is none.

    Raises:
        TaskError: all of them lie in the course's own folder.
        InfraError: some lie in this package or in an installed one.
    """
    if not problems:
        return
    ordered = sorted(problems, key=lambda p: (str(p.path), p.line, p.text))
    num = "1 problem" if len(ordered) == 1 else f"{len(ordered)} problems"
    text = "\n".join([f"Plug-ins have {num} for their author to mend:", *(f"  {p}" for p in ordered)])
    raise TaskError(text) if all(p.of_course for p in ordered) else InfraError(text)


def line_in(path: Path, error: BaseException) -> int:
    """The last line of a file that took part in an error; 0 where none did."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            line = step.tb_lineno
        step = step.tb_next
    return line


def meant(word: str, known: Iterable[str]) -> str:
    """A known word that is spelled much like this one, whatever the case; "" where none is."""
    # Who misspells nothing need not wait for it.
    import difflib

    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_case, n=1)
    return by_case[close[0]] if close else ""
