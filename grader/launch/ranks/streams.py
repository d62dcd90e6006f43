"""What ranks send: pipes that never block them, caps that hold, text that is safe to keep and to show.

Nothing here waits for the end of a pipe: a daemonised grandchild may hold it open for ever. No content is
interpreted beyond counting lines, and telling torch's complaints while it waits for a store from signs of life.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import IO

PIPE_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 18
_TAIL_SHARE = 4
_LONGEST_LINE_BYTES = 8 << 20
_FRESH_BYTES = 8192
_RECENT_BYTES = 8192
# Everything that could steer a terminal, end a string early or hide text: controls, bidi overrides, surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# What torch writes again and again, with a stack of its own, while it looks for a store that nobody keeps.
_WAITS = (b"failed to connect", b"retrying")
_FRAME_NUMBER = re.compile(rb"frame #\d+:")


def open_pipe() -> tuple[int, int]:
    """A pipe as large as the system allows; its reading end never blocks. Returns (reader, writer)."""
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        # Over the user's quota of pipe memory: the usual 64 KiB work too, the writer then waits more often.
        pass
    os.set_blocking(reader, False)
    return reader, writer


def safe_text(raw: bytes) -> str:
    """Text without terminal codes, NUL, control or direction characters; undecodable bytes become U+FFFD."""
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    # A lone carriage return is a progress bar drawing over itself: one line per drawing.
    text = _TERMINAL_CODES.sub("", text).replace("\r", "\n")
    return _UNSAFE.sub("\ufffd", text)


def _says_only_that_it_waits(chunk: bytes) -> bool:
    return b"[c10d]" in chunk and all(map(_tells_of_waiting, chunk.split(b"\n")))


def _tells_of_waiting(line: bytes) -> bool:
    # Plain searches: an expression for all of it goes back and forth for minutes in a line that is made for that.
    if line[:1] == b"[" and line[1:2].isupper():
        _, found, said = line.partition(b"[c10d]")
        return bool(found) and any(words in said for words in _WAITS)
    if line.startswith((b"Exception raised from ", b"frame #")):
        return line[:1] == b"E" or _FRAME_NUMBER.match(line) is not None
    return line == b"<omitting python frames>" or not line.strip(b" \t")


class PipeReader:
    """The reading end of a pipe; counts what came."""

    def __init__(self, reader: int) -> None:
        self.reader = reader
        self.num_bytes = 0
        self.full = False

    def drain(self) -> bool:
        """Take what is there now, without waiting; True when there was a sign of life in it."""
        if self.reader < 0:
            return False
        moved = False
        for _ in range(8):
            try:
                chunk = os.read(self.reader, _CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            if not chunk:
                self.close()
                break
            self.num_bytes += len(chunk)
            self._take(chunk)
            moved = moved or not _says_only_that_it_waits(chunk)
            if len(chunk) < _CHUNK_BYTES:
                break
        return moved

    def close(self) -> None:
        """Stop reading."""
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1

    def _take(self, chunk: bytes) -> None:
        raise AssertionError("a source must take what it drains")


class Capture(PipeReader):
    """Output of a rank: the first three quarters of the cap and the last quarter are kept, the middle is cut."""

    def __init__(self, reader: int, cap_bytes: int) -> None:
        super().__init__(reader)
        self._tail_bytes = cap_bytes // _TAIL_SHARE
        self._head_bytes = cap_bytes - self._tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._num_newlines = 0
        self._last_byte = b"\n"
        self._num_lost = 0
        self._fresh = bytearray()

    @property
    def cut(self) -> bool:
        """Whether the middle had to go."""
        return self._num_lost > 0

    @property
    def num_lines(self) -> int:
        """Lines written, an unfinished last one included."""
        return self._num_newlines + (self._last_byte != b"\n")

    def _take(self, chunk: bytes) -> None:
        self._num_newlines += chunk.count(b"\n")
        self._last_byte = chunk[-1:]
        self._fresh += chunk[-_FRESH_BYTES:]
        del self._fresh[:-_FRESH_BYTES]
        room = self._head_bytes - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        excess = len(self._tail) - self._tail_bytes
        # Trimming moves the whole tail, so it waits until a good part of it is stale.
        if excess > self._tail_bytes:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._tail_bytes
        if excess > 0:
            del self._tail[:excess]
            self._num_lost += excess

    def take_file(self, file: IO[bytes]) -> None:
        """Take what a file holds from here on, as if it had come through the pipe."""
        while chunk := file.read(_CHUNK_BYTES):
            self.num_bytes += len(chunk)
            self._take(chunk)

    def text(self) -> str:
        """All that is kept, safe, with a mark where it was cut; in UTF-8 no larger than the cap and its mark."""
        self._trim()
        head, tail = safe_text(bytes(self._head)).encode(), safe_text(bytes(self._tail)).encode()
        if not self._num_lost:
            head = tail = safe_text(bytes(self._head + self._tail)).encode()
            if len(head) <= self._head_bytes + self._tail_bytes:
                return head.decode()
        # What is no text takes more bytes to show than it had, so that it may have to be cut even if all was kept.
        head, tail = head[: self._head_bytes], tail[-self._tail_bytes :]
        lost = f"{self._num_lost:,} bytes cut" if self._num_lost else "Cut"
        mark = f"\n[… {lost} here: the output was larger than is kept …]\n"
        return head.decode(errors="ignore") + mark + tail.decode(errors="ignore")

    def end_text(self) -> str:
        """The last quarter of the cap alone, safe: where a traceback stands."""
        self._trim()
        return safe_text(bytes(self._tail)) if self._num_lost else self.text()

    def fresh_text(self, most_bytes: int) -> str:
        """The whole lines that came since the last call, safe; of much only the end."""
        end = self._fresh.rfind(b"\n") + 1
        if not end and len(self._fresh) < _FRESH_BYTES:
            return ""
        fresh = bytes(self._fresh[: end or None])
        del self._fresh[: len(fresh)]
        if len(fresh) > most_bytes:
            fresh = fresh[-most_bytes:]
            # From the first whole line on, or the end of a line that is longer than that.
            fresh = fresh[fresh.find(b"\n") + 1 :] or fresh
        return safe_text(fresh)

    def last_line(self) -> str:
        """The last line with anything on it, safe and short."""
        recent = bytes((self._tail or self._head)[-2000:])
        lines = [line.strip() for line in safe_text(recent).splitlines()]
        return next((line[:200] for line in reversed(lines) if line), "")


class TraceSink(PipeReader):
    """Probe lines of one rank: stamped with the time of receipt and written at once, unbuffered, up to a cap."""

    def __init__(self, reader: int, path: Path, cap_bytes: int) -> None:
        super().__init__(reader)
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._cap_bytes = cap_bytes
        self._kept_bytes = 0
        self._partial = bytearray()
        self.cut = False
        self.num_steps = 0
        self.recent = bytearray()
        """The end of what came: for people who look on."""
        self.now_s = 0.0
        """Time of receipt of what `drain` takes, seconds after the ranks' start; set by the caller."""

    def _take(self, chunk: bytes) -> None:
        # For the progress line only: a forged event can make it lie, nothing else.
        self.num_steps += chunk.count(b'"e": "step"') + chunk.count(b'"e":"step"')
        self.recent += chunk[-_RECENT_BYTES:]
        del self.recent[:-_RECENT_BYTES]
        if self.cut:
            return
        self._partial += chunk
        end = self._partial.rfind(b"\n") + 1
        if not end and len(self._partial) > _LONGEST_LINE_BYTES:
            end = len(self._partial)
        if end:
            lines = bytes(self._partial[:end]).split(b"\n")
            del self._partial[:end]
            self._write([line for line in lines if line])

    def _write(self, lines: list[bytes]) -> None:
        stamp = b"%.6f\t" % self.now_s
        for index, line in enumerate(lines):
            self._kept_bytes += len(stamp) + len(line) + 1
            if self._kept_bytes > self._cap_bytes:
                self.cut = True
                lines = lines[:index]
                break
        if lines:
            write_all(self._file, b"".join(stamp + line + b"\n" for line in lines))

    def finish(self) -> None:
        """Keep an unfinished last line as it is and close the file."""
        if self._partial and not self.cut:
            self._write([bytes(self._partial)])
        self._partial.clear()
        self.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def write_all(file: int, data: bytes) -> None:
    """All of it, however many writes that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
