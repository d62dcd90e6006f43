"""Stacks of live ranks: asking for them, reading them, and telling which collective a rank waits in.

`faulthandler` writes them from a signal handler, so it also works while the interpreter is stuck inside C++. The
text comes from the learner's process: it explains a run, and ends one only together with what the kernel says
(see `deadlock`).
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from grader.launch.endings.blocking_call import blocking_call
from grader.launch.system.processes import catches, send
from grader.probe.communication.collective_names import COLLECTIVES

# A real-time signal: schedulers and training frameworks use SIGUSR1 and SIGUSR2 themselves.
STACK_SIGNAL = signal.SIGRTMAX - 2
_LONGEST_DUMP_BYTES = 1 << 18
_LAUNCH_FOLDER = str(Path(__file__).resolve().parent.parent) + os.sep
_PROBE_FOLDER = str(Path(__file__).resolve().parent.parent.parent / "probe") + os.sep

_DUMP = "(most recent call first):"
# No file has a line of ten digits, and Python makes no number of thousands of them.
_FRAME = re.compile(r'  File "(?P<path>.*)", line (?P<line>\d{1,9}) in (?P<function>.*)', re.DOTALL)

# What newer torch calls inside those that scripts name.
_COLLECTIVES = frozenset((*COLLECTIVES, "all_gather_single", "reduce_scatter_single"))
_GROUP_CALLS = {
    "init_process_group": "rendezvous (init_process_group)",
    "new_group": "new_group",
    "new_subgroups": "new_group",
    "new_subgroups_by_enumeration": "new_group",
    "split_group": "split_group",
    "destroy_process_group": "destroy_process_group",
    "_store_based_barrier": "barrier on the store",
}
# (end of the library file's path, function or "" for any, what a rank waits for there); the first match counts, and
# the frame nearest to the submission is asked first, because it says what the learner called.
_PLACES: tuple[tuple[str, str, str], ...] = (
    ("torch/nn/parallel/distributed.py", "__init__", "DDP construction"),
    ("torch/nn/parallel/distributed.py", "_sync_buffers", "DDP buffer broadcast"),
    ("torch/nn/parallel/distributed.py", "_sync_module_states", "DDP construction"),
    ("torch/nn/modules/_functions.py", "forward", "SyncBatchNorm statistics"),
    ("torch/nn/modules/_functions.py", "backward", "SyncBatchNorm gradients"),
    ("torch/distributed/algorithms/join.py", "", "Join"),
    ("torch/distributed/rendezvous.py", "", "rendezvous (init_process_group)"),
    ("torch/distributed/_functional_collectives.py", "wait_tensor", "functional collective"),
    ("torch/distributed/checkpoint/utils.py", "", "distributed checkpoint"),
    ("torch/autograd/graph.py", "_engine_run_backward", "DDP gradient all-reduce"),
    ("torch/multiprocessing/spawn.py", "join", "child processes (mp.spawn)"),
    ("multiprocessing/process.py", "join", "child processes (join)"),
)

HOST_WAITS = frozenset(
    {*_GROUP_CALLS.values(), "store operation", "child processes (mp.spawn)", "child processes (join)"}
)
"""What is waited for without a GPU's help, whichever backend computes."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One line of a dump; `path` is absolute here."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One dump.

    Attributes:
        text: as written.
        frames: innermost first, without frames of the launcher and the probe.
    """

    text: str
    frames: tuple[StackFrame, ...]


class StackFile:
    """Where one rank's dumps arrive: memory without a path, opened by the supervisor, appended to by the rank."""

    def __init__(self, rank: int) -> None:
        self.file = os.memfd_create(f"stacks-of-rank-{rank}")
        self._read_bytes = 0

    def request(self, pid: int) -> bool:
        """Ask for a dump; False where the process would not answer it (it may have become another program)."""
        self._read_bytes = os.fstat(self.file).st_size
        return catches(pid, STACK_SIGNAL) and send(pid, STACK_SIGNAL)

    @property
    def size_bytes(self) -> int:
        """Bytes that came since the last request; a dump is whole when this stands still."""
        # The rank may have shortened the file meanwhile: it is its own to write.
        return max(0, os.fstat(self.file).st_size - self._read_bytes)

    def read(self) -> Stack | None:
        """The dump that was requested last, None where none came."""
        raw = os.pread(self.file, min(self.size_bytes, _LONGEST_DUMP_BYTES), self._read_bytes)
        text = raw.decode("utf-8", errors="replace")
        frames = frames_of(text)
        return Stack(text, frames) if frames else None

    def close(self) -> None:
        """Forget the dumps."""
        os.close(self.file)


def frames_of(text: str) -> tuple[StackFrame, ...]:
    """Frames of the last dump in a text, innermost first; () where there are none."""
    frames = [
        StackFrame(match["path"], int(match["line"]), match["function"])
        for line in text.rpartition(_DUMP)[2].splitlines()
        if (match := _FRAME.fullmatch(line)) is not None
    ]
    # The launcher called the script, the probe stands between the script and what it called: neither is the learner's.
    outermost = next(
        (i for i, frame in enumerate(frames) if frame.path.startswith(_LAUNCH_FOLDER)), len(frames)
    )
    return tuple(frame for frame in frames[:outermost] if not frame.path.startswith(_PROBE_FOLDER))


def in_folder(path: str, folder: str) -> bool:
    """Whether a frame's file lies below a folder."""
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def operation(frames: tuple[StackFrame, ...], submission_dir: str) -> str:
    """The collective, store operation or join that a thread with these frames sits in; "" for none."""
    library: list[StackFrame] = []
    for frame in frames:
        if in_folder(frame.path, submission_dir):
            break
        library.append(frame)
    else:
        # No line of the submission below: a thread of a library, or the interpreter's own end.
        return _library_operation(library)
    return _library_operation(library) if library else blocking_call(frames[0].path, frames[0].line)


def _library_operation(frames: list[StackFrame]) -> str:
    for frame in reversed(frames):
        if frame.path.endswith("torch/distributed/distributed_c10d.py"):
            if frame.function in _COLLECTIVES:
                return frame.function
            if frame.function in _GROUP_CALLS:
                return _GROUP_CALLS[frame.function]
        for ending, function, name in _PLACES:
            if frame.path.endswith(ending) and function in ("", frame.function):
                return name
    # Inside C++ with no Python below: DDP's reducer (its buckets, its copies of buffers) and the like.
    if frames and frames[0].path.endswith("torch/nn/parallel/distributed.py"):
        return "DDP synchronisation"
    if frames and "/torch/distributed/" in frames[0].path:
        return f"torch.distributed ({frames[0].function})"
    return ""
