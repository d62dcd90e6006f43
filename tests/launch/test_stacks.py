"""A rank answers with the stack that it waits in, and lives on, whatever its other threads do meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time

from grader.launch.endings.stacks import StackFile

# Threads whose frames come and go all the time, as those of a data loader do.
BUSY = """
import json, sys, threading, time
from grader.launch.ranks.rank import answer_with_stacks
def deep(n):
    return n and deep(n - 1)
def busy():
    while True:
        json.loads(json.dumps([deep(20) for _ in range(20)]))
answer_with_stacks(int(sys.argv[1]))
for _ in range(2):
    threading.Thread(target=busy, daemon=True).start()
def waits():
    print(flush=True)
    time.sleep(600)
waits()
"""


def test_looking_a_thousand_times_does_not_hurt_a_rank_with_busy_threads() -> None:
    stacks = StackFile(0)
    rank = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(stacks.file)], stdout=subprocess.PIPE, pass_fds=(stacks.file,)
    )
    try:
        assert rank.stdout is not None
        rank.stdout.readline()
        for _ in range(1000):
            assert stacks.request(rank.pid)
            time.sleep(0.0005)
        assert rank.poll() is None
        stacks.request(rank.pid)
        deadline = time.monotonic() + 30
        while (stack := stacks.read()) is None or len(stack.frames) < 2:
            assert time.monotonic() < deadline, "no stack came"
            time.sleep(0.01)
        assert [frame.function for frame in stack.frames] == ["waits", "<module>"]
    finally:
        rank.kill()
        rank.communicate()
        stacks.close()
