"""M5 through the queue, and M9: what real workers do, claimed, judged, rendered and stored; and after kill -9."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil

from grader.catalog.data.datasets import prepare
from grader.settings import settings
from grader.store.tables.attempt import AttemptState
from tests.bench.container_overhead import TRIVIAL
from tests.bench.figures import Figure
from tests.faults.judged import assert_judged_once
from tests.worker.rig import Rig, wait_until

_RECOVERED_S = 60.0
_LEASE_S = "30"


def measure_queue_throughput(runs: int) -> Iterator[Figure]:
    """M5: seconds per trivial two-rank attempt from the queue, reports and evidence stored, from one slot and two."""
    prepare("digits")
    for slots in (1, 2):
        with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder:
            rig = _rig(Path(folder))
            try:
                rig.worker("w1", "--slots", str(slots))
                rig.relay()
                for _ in range(2 * slots):  # the first of each slot warms it
                    rig.wait(rig.hand_in(rig.script(TRIVIAL)), AttemptState.JUDGED)
                number = max(4, runs) * slots
                ids = [rig.hand_in(rig.script(TRIVIAL)) for _ in range(number)]
                ends = [rig.wait(one, AttemptState.JUDGED, within_s=600) for one in ids]
                spans = [(end.claimed_at, end.finished_at) for end in ends]
                began = min(one for one, _end in spans if one is not None)
                ended = max(end for _one, end in spans if end is not None)
                seconds = (ended - began).total_seconds() / number
            finally:
                rig.close()
        yield Figure.of(
            "M5q", f"process through the queue, {slots} slot(s), s per attempt", "s", 1.0, [seconds]
        )


def measure_recovery(runs: int) -> Iterator[Figure]:
    """M9: a worker is killed outright at a random moment; seconds until the attempt runs again, its own run left out.

    Slots and whole workers in turn, with the leases of a real site; every attempt has to be judged, and once. Attempts
    that were over before the kill came are not counted.
    """
    prepare("digits")
    chance = random.Random(9)
    waits: list[float] = []
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder:
        rig = _rig(Path(folder), GRADER_LEASE_S=_LEASE_S)
        try:
            rig.start("relay", "relay")
            rig.worker()
            rig.wait(rig.hand_in(), AttemptState.JUDGED)
            judged = []
            while len(waits) < max(2, runs * 5 // 2):
                attempt_id = rig.hand_in()
                judged.append(attempt_id)
                rig.wait(attempt_id, AttemptState.RUNNING, AttemptState.JUDGED)
                time.sleep(chance.uniform(0.0, 1.5))
                hit = rig.facts(attempt_id).state is AttemptState.RUNNING
                killed = datetime.now(UTC)
                _kill(rig, whole=len(waits) % 2 == 1)
                facts = rig.wait(attempt_id, AttemptState.JUDGED)
                if hit and facts.tries > 1:
                    assert facts.claimed_at is not None
                    waits.append((facts.claimed_at - killed).total_seconds())
            assert_judged_once(rig, judged)
        finally:
            rig.close()
    yield Figure("M9", "kill -9, until it runs again", "s", None, tuple(waits))
    yield Figure.of("M9", "kill -9, the worst", "s", _RECOVERED_S, [max(waits)])


def _kill(rig: Rig, *, whole: bool) -> None:
    if not whole:
        for process in rig.worker_processes():
            os.kill(process.pid, signal.SIGKILL)
        return
    supervisor = rig.processes.pop("w1")
    below = psutil.Process(supervisor.pid).children(recursive=True)
    os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    psutil.wait_procs(below, timeout=30)
    rig.worker()
    wait_until(rig.worker_processes, "its successor is there")


def _rig(folder: Path, **more: str) -> Rig:
    data = settings().data_root.absolute()
    return Rig(folder / "site", data, f"sqlite:///{folder / 'grader.db'}", settings=more)
