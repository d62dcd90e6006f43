"""A file is whole or not there, readable for nobody else before it should be, and nothing is left beside it."""

from __future__ import annotations

import os
import resource
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.files import write_once, write_whole

Write = Callable[..., None]
both = pytest.mark.parametrize("write", [write_whole, write_once])


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@contextmanager
def disk_for(num_bytes: int) -> Iterator[None]:
    """The kernel refuses to let a file grow beyond this, as a full disk does."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@both
@pytest.mark.parametrize("data", ["Grüße\r\n", b"\x00\xff", ""])
def test_content_is_whole(tmp_path: Path, write: Write, data: str | bytes) -> None:
    write(tmp_path / "file", data)
    assert (tmp_path / "file").read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert left(tmp_path) == ["file"]


@both
@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o640])
def test_mode_is_what_was_asked_for(tmp_path: Path, write: Write, mode: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "file", "x", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_an_old_file_is_replaced_mode_and_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a longer text")
    (tmp_path / "file").chmod(0o644)
    write_whole(tmp_path / "file", "new", mode=0o600)
    assert (tmp_path / "file").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_what_is_written_once_stays(tmp_path: Path) -> None:
    write_once(tmp_path / "file", "first")
    write_once(tmp_path / "file", "second")
    assert (tmp_path / "file").read_text() == "first"
    assert left(tmp_path) == ["file"]


@both
def test_a_full_disk_leaves_nothing_behind_and_the_old_file_in_place(tmp_path: Path, write: Write) -> None:
    (tmp_path / "file").write_text("old")
    with disk_for(1 << 16), pytest.raises(OSError, match="too large"):
        write(tmp_path / "file", b"x" * (1 << 20))
    assert (tmp_path / "file").read_text() == "old"
    assert left(tmp_path) == ["file"]


def test_a_place_that_is_taken_by_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "file", "x")
    assert left(tmp_path) == ["file"]
    assert left(tmp_path / "file") == []


@both
def test_text_that_is_no_text_leaves_nothing_behind(tmp_path: Path, write: Write) -> None:
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path / "file", "\ud800")
    assert left(tmp_path) == []


def test_no_reader_meets_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [letter * 300_000 for letter in "ab"]
    write_whole(path, texts[0])
    odd: list[int] = []
    written = threading.Event()

    def read() -> None:
        while not written.is_set():
            if (text := path.read_text()) not in texts:
                odd.append(len(text))

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(200):
        write_whole(path, texts[turn % 2])
    written.set()
    reader.join()
    assert odd == []


def test_several_who_write_once_believe_the_same(tmp_path: Path) -> None:
    believed: list[str] = []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        write_once(tmp_path / "file", f"{number}" * 1000)
        believed.append((tmp_path / "file").read_text())

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(believed) == 8
    assert len(set(believed)) == 1
    assert len(believed[0]) == 1000
    assert left(tmp_path) == ["file"]
