"""What the kernel says of processes: a standstill is only one where none of them is at work."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from grader.launch.system.processes import other_threads, usage


def test_whoever_computes_is_at_work_and_whoever_sleeps_is_not() -> None:
    spins = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    sleeps = subprocess.Popen(
        [sys.executable, "-c", "import time\nprint(flush=True)\ntime.sleep(600)"], stdout=subprocess.PIPE
    )
    try:
        for process in (spins, sleeps):
            assert process.stdout is not None
            process.stdout.readline()
        time.sleep(0.2)
        # Even where others have all the cores: it wants one.
        for _ in range(20):
            seen = usage(spins.pid)
            assert seen is not None
            assert seen.working
        idle = usage(sleeps.pid)
        assert idle is not None
        assert not idle.working
        assert not idle.zombie
    finally:
        for process in (spins, sleeps):
            process.kill()
            process.communicate()


def test_threads_are_told_by_the_names_that_the_kernel_has_for_them() -> None:
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("cuda-EvtHandlr")
        begun.set()
        over.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    try:
        assert "cuda-EvtHandlr" in other_threads()
    finally:
        over.set()
        thread.join()
    # Python has done with a thread a moment before the kernel has.
    deadline = time.monotonic() + 10
    while "cuda-EvtHandlr" in other_threads():
        assert time.monotonic() < deadline
        time.sleep(0.01)
