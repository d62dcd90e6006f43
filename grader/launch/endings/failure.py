"""The last words of a rank: the traceback at the end of its standard error, taken apart.

A script can print any text there, so this is for display and hints only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.launch.endings.stacks import StackFrame

_HEADER = "Traceback (most recent call last):"
# No file has a line of ten digits, and Python makes no number of thousands of them.
_FRAME = re.compile(r'\s*File "(?P<path>.*)", line (?P<line>\d{1,9})(?:, in (?P<function>.*))?', re.DOTALL)
_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_LONGEST_MESSAGE = 2000
# torch writes the rank in front of every line of a traceback once there is a process group.
_RANK_PREFIX = re.compile(r"^\[rank\d+\]: ?", re.MULTILINE)
_TERMINATED = re.compile(
    r"^terminate called after throwing an instance of '(?P<type>[^']+)'\n\s*what\(\):\s*(?P<message>.*)",
    re.MULTILINE,
)
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "Cannot allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


@dataclass(frozen=True, slots=True)
class LastWords:
    """What a rank's traceback says; frames innermost first, paths absolute."""

    type: str
    message: str
    frames: tuple[StackFrame, ...]

    @property
    def out_of_memory(self) -> bool:
        """Whether an allocation failed."""
        if self.type in ("MemoryError", "OutOfMemoryError"):
            return True
        return any(words in self.message for words in _OUT_OF_MEMORY)


def last_words(stderr: str) -> LastWords | None:
    """Parse the last traceback (or syntax error) of a standard error text; None where there is none."""
    stderr = _RANK_PREFIX.sub("", stderr)
    lines = stderr.splitlines()
    start = next((i for i in range(len(lines) - 1, -1, -1) if lines[i] == _HEADER), None)
    if start is None:
        # A script that does not compile has no frames, hence no header.
        start = next((i for i in range(len(lines) - 1, -1, -1) if _FRAME.fullmatch(lines[i])), None)
        if start is None:
            return _terminated(stderr)
        start -= 1
    frames: list[StackFrame] = []
    for number in range(start + 1, len(lines)):
        line = lines[number]
        frame = _FRAME.fullmatch(line)
        if frame is not None:
            frames.append(StackFrame(frame["path"], int(frame["line"]), frame["function"] or ""))
        elif line and not line[0].isspace():
            error = _ERROR.match(line)
            if error is None:
                return None
            message = "\n".join([error["message"] or "", *_rest(lines[number + 1 :])]).strip()
            name = error["type"].rpartition(".")[2]
            return LastWords(name, message[:_LONGEST_MESSAGE], tuple(reversed(frames)))
    return None


def _terminated(stderr: str) -> LastWords | None:
    """An exception that no Python frame could catch, as the C++ runtime prints it."""
    found = _TERMINATED.search(stderr)
    return LastWords(found["type"], found["message"][:_LONGEST_MESSAGE], ()) if found is not None else None


def _rest(lines: list[str]) -> list[str]:
    # C++ exceptions append their own stack, which tells a learner nothing.
    kept: list[str] = []
    for line in lines:
        if line.startswith("Exception raised from ") or len(kept) == 20:
            break
        kept.append(line)
    return kept
