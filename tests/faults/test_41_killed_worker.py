"""Row 41: one process of a worker, or the whole worker, is killed outright in the middle of an attempt."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, Rig, wait_until

BRIEF = SLOW.replace("600", "15")


@pytest.mark.parametrize("who", ["process", pytest.param("supervisor", marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_run(site: Site, who: str, remote: bool) -> None:
    rig = site(remote=remote)
    rig.relay()
    rig.worker()
    hit, waits = rig.hand_in(rig.script(BRIEF)), rig.hand_in()
    pid = rig.wait_running(hit)
    assert _left_behind(rig), "where it is made while it is judged"
    if who == "process":
        (process,) = rig.worker_processes()
        os.kill(process.pid, signal.SIGKILL)
    else:
        supervisor = rig.processes.pop("w1")
        below = psutil.Process(supervisor.pid).children(recursive=True)
        os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.wait()
        psutil.wait_procs(below, timeout=30)
        rig.worker()
    wait_until(lambda: not psutil.pid_exists(pid), "what it had started is dead")
    for attempt_id in (hit, waits):
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert rig.facts(hit).tries == 2
    assert_judged_once(rig, [hit, waits])
    # Evidence that was being made when it was killed is gone, though the worker itself may have gone on.
    wait_until(lambda: not _left_behind(rig), f"left behind: {_left_behind(rig)}", within_s=10)


def _left_behind(rig: Rig) -> list[str]:
    return [str(one) for one in (rig.folder / "state" / "workers").rglob("attempt-*")]


def test_a_supervisor_that_dies_alone_lets_its_processes_finish(site: Site) -> None:
    """Not killed with its group: its processes hear of it, judge what they have and end."""
    rig: Rig = site()
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in(rig.script(BRIEF))
    rig.wait_running(attempt_id)
    processes = rig.worker_processes()
    supervisor = rig.processes.pop("w1")
    supervisor.kill()
    supervisor.wait()
    rig.wait(attempt_id, AttemptState.JUDGED)
    assert rig.facts(attempt_id).tries == 1
    _gone, alive = psutil.wait_procs(processes, timeout=60)
    assert not alive
    assert_judged_once(rig, [attempt_id])
