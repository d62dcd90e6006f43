"""Scripts are read in several threads at once: by `--jobs`, and by a service that is asked by many."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from grader.checks.source.script import parse
from grader.model.submission import SourceFile, Submission

SECONDS = 3.0
TEXT = "".join(
    f"def f{n}(x):\n    return [(x + {n}) * y for y in range(x) if y > {n}]\n\n\n" for n in range(200)
)


class _Resource:
    """What lets another thread run when it is collected, as a closing file does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def collecting() -> Iterator[None]:
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)


@pytest.mark.usefixtures("collecting")
def test_no_thread_disturbs_another() -> None:
    wrong: list[BaseException] = []
    end = time.monotonic() + SECONDS

    def read(number: int) -> None:
        while time.monotonic() < end and not wrong:
            _ = [_Resource() for _ in range(10)]
            try:
                script = parse(Submission(f"s{number}", (SourceFile("train.py", f"# {number}\n{TEXT}"),)))
                assert not script.syntax_errors
            except BaseException as error:  # noqa: BLE001  # of a thread, told below
                wrong.append(error)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
