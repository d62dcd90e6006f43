"""Row 41: a worker's slot, or the whole worker, is killed outright in the middle of an attempt."""

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


@pytest.mark.parametrize("who", ["slot", pytest.param("station", marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_run(site: Site, who: str) -> None:
    rig = site()
    rig.relay()
    rig.worker()
    hit, waits = rig.hand_in(rig.script(BRIEF)), rig.hand_in()
    pid = rig.wait_running(hit)
    if who == "slot":
        (slot,) = rig.slots()
        os.kill(slot.pid, signal.SIGKILL)
    else:
        station = rig.processes.pop("w1")
        below = psutil.Process(station.pid).children(recursive=True)
        os.killpg(station.pid, signal.SIGKILL)
        station.wait()
        psutil.wait_procs(below, timeout=30)
        rig.worker()
    wait_until(lambda: not psutil.pid_exists(pid), "what it had started is dead")
    for attempt_id in (hit, waits):
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert rig.facts(hit).tries == 2
    assert_judged_once(rig, [hit, waits])


def test_a_station_that_dies_alone_lets_its_slots_finish(site: Site) -> None:
    """Not killed with its group: the slots hear of it, judge what they have and end."""
    rig: Rig = site()
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in(rig.script(BRIEF))
    rig.wait_running(attempt_id)
    slots = rig.slots()
    station = rig.processes.pop("w1")
    station.kill()
    station.wait()
    rig.wait(attempt_id, AttemptState.JUDGED)
    assert rig.facts(attempt_id).tries == 1
    _gone, alive = psutil.wait_procs(slots, timeout=60)
    assert not alive
    assert_judged_once(rig, [attempt_id])
