"""Lines of a trace bear the seal of this run's probe: what others wrote, and what was taken out, shows."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from types import FrameType
from typing import Any

import pytest

from grader.probe.trace.seals import Sealer, look_through
from grader.probe.trace.writer import Writer

KEY, RANK = bytes(range(100, 132)), 1


@contextmanager
def written(key: bytes = KEY) -> Iterator[tuple[Writer, list[bytes]]]:
    """A writer, and the lines that it has written once the block is over."""
    reader, end = os.pipe()
    writer, lines = Writer(), list[bytes]()
    writer.open(end, 0.0, Sealer(key, RANK) if key else None)
    # As if this file were the probe's.
    writer._callers.add(__file__)
    yield writer, lines
    os.close(writer._fd)
    with os.fdopen(reader, "rb") as stream:
        lines += [line.rstrip(b"\n") for line in stream if line != b"\n"]


def told(number: int = 5) -> list[bytes]:
    with written() as (writer, lines):
        for n in range(number):
            writer.write("step", n=n)
    return lines


def test_what_the_probe_wrote_is_its_own_and_reads_as_before() -> None:
    lines = told()
    assert look_through(lines, KEY, RANK) == (0, 0)
    assert [json.loads(line)["n"] for line in lines] == [0, 1, 2, 3, 4]


def test_lines_of_another_run_or_another_rank_are_foreign() -> None:
    assert look_through(told(), KEY[::-1], RANK) == (5, 0)
    assert look_through(told(), KEY, RANK + 1) == (5, 0)


def test_a_changed_a_made_up_and_a_repeated_line_are_foreign() -> None:
    lines = told()
    changed = [*lines[:2], lines[2].replace(b'"n":2', b'"n":7'), *lines[3:]]
    # The changed line is foreign, and the one that it was is gone.
    assert look_through(changed, KEY, RANK) == (1, 1)
    assert look_through([*lines, b'{"e":"step","t":1,"n":5}'], KEY, RANK) == (1, 0)
    assert look_through([*lines, lines[3]], KEY, RANK) == (1, 0)


def test_lines_that_were_taken_out_are_gone_and_the_end_of_a_killed_rank_is_not() -> None:
    lines = told()
    assert look_through([lines[0], lines[4]], KEY, RANK) == (0, 3)
    assert look_through(lines[:2], KEY, RANK) == (0, 0)


def test_what_is_no_event_is_nobodys() -> None:
    lines = told()
    rubbish = [b"", b"\xff\x00", b'{"e":"st', b"[1]", b'{"no":"event"}', b"[" * 100_000]
    assert look_through([*lines, *rubbish, lines[4][:20]], KEY, RANK) == (0, 0)


def test_a_flood_of_rubbish_is_not_read_to_its_end() -> None:
    rubbish = itertools.repeat(b"{x")
    assert look_through(itertools.chain(told(), rubbish), KEY, RANK) == (10_000, 0)


def test_a_line_written_while_another_is_being_written_waits_for_it() -> None:
    with written() as (writer, lines):
        plain = writer._write

        def interrupted(descriptor: int, line: Any) -> int:
            # As a finalizer or a signal handler would, in the middle of a line; it goes out in two pieces.
            writer._write = plain
            sent = plain(descriptor, line[:10])
            writer.write("pass_end", n=1)
            return sent

        writer._write = interrupted
        writer.write("step", n=0)
    assert look_through(lines, KEY, RANK) == (0, 0)
    assert [json.loads(line)["e"] for line in lines] == ["step", "pass_end"]


def test_a_handler_that_raises_in_the_middle_of_a_line_makes_nobody_a_forger() -> None:
    class AlarmError(Exception):
        pass

    def ring(_signum: int, _frame: FrameType | None) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with written() as (writer, lines):
            plain = writer._write

            def torn(descriptor: int, line: Any) -> int:
                writer._write = plain
                plain(descriptor, line[:10])
                os.kill(os.getpid(), signal.SIGUSR1)
                return 10

            writer.write("step", n=0)
            writer._write = torn
            with pytest.raises(AlarmError):
                writer.write("step", n=1)
            writer.write("step", n=2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert look_through(lines, KEY, RANK) == (0, 1)
    assert [json.loads(line)["n"] for line in (lines[0], lines[2])] == [0, 2]


def test_the_writer_tells_of_a_stranger_who_calls_it() -> None:
    reader, end = os.pipe()
    writer = Writer()
    writer.open(end, 0.0, Sealer(KEY, RANK))
    writer.send(b'{"e":"step","t":1,"n":0}')
    writer.send(b'{"e":"step","t":1,"n":1}')
    events = [json.loads(line) for line in os.read(reader, 1 << 16).splitlines()]
    for descriptor in (reader, writer._fd):
        os.close(descriptor)
    assert [(e["e"], e.get("what"), e.get("target")) for e in events if e["e"] == "reach"] == [
        ("reach", "writer", Path(__file__).name)
    ]


def test_nobody_but_the_writer_gets_a_line_sealed() -> None:
    assert Sealer(KEY, RANK).sealed(b'{"e":"step"}') == b'{"e":"step"}'


def test_no_memory_of_a_rank_holds_the_key_once_it_is_wiped() -> None:
    """A process of its own makes of a key what a rank makes of it; then all its memory is searched for it."""
    key = os.urandom(32)
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=PIPE, stdout=PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(key)
        holder.stdin.flush()
        assert holder.stdout.readline() == b"key\n"
        assert key in memory_of(holder.pid)
        holder.stdin.write(b"go")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"wiped\n"
        assert key not in memory_of(holder.pid)
        holder.stdin.close()


HOLDER = """
import sys
from grader.launch.ranks.seal_key import KEY_BYTES, SealKey
from grader.probe.hooks import sampling
from grader.probe.trace.seals import Sealer
raw = bytearray(KEY_BYTES)
with open(0, "rb", buffering=0) as given:
    given.readinto(raw)
    key = SealKey(raw)
    print("key", flush=True)
    given.read(2)
    sealer = Sealer(key.raw, 1)
    sampling.install(key.raw)
    key.wipe()
    print("wiped", flush=True)
    given.read(1)
"""


def memory_of(pid: int) -> bytes:
    """All that a process could read of itself."""
    found = []
    folder = Path("/proc", str(pid))
    with (folder / "maps").open() as maps, (folder / "mem").open("rb", buffering=0) as memory:
        for line in maps:
            place, rights, *_ = line.split()
            first, last = (int(end, 16) for end in place.split("-"))
            if rights.startswith("r") and "[v" not in line:
                memory.seek(first)
                found.append(memory.read(last - first))
    return b"".join(found)


def test_without_a_key_lines_bear_no_seal() -> None:
    with written(key=b"") as (writer, lines):
        writer.write("step", n=0)
    assert json.loads(lines[0]).keys() == {"e", "t", "n"}
