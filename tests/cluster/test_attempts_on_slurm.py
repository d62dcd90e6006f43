"""A class that jobs of a real Slurm judge, and what clusters do to jobs: nothing is lost, and nothing judged twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.store.tables.attempt import AttemptState
from tests.cluster.slurm_site import SlurmSite
from tests.faults.judged import assert_judged_once
from tests.worker.rig import wait_until

FAILS = 'raise SystemExit("no")'


@pytest.mark.parametrize("site", ["remote"], indirect=True)
def test_a_class_of_thirty(site: SlurmSite) -> None:
    """Three of them train; of all others it is the number that matters. Neither feed nor nodes reach the database."""
    rig = site.rig
    people = [rig.person(f"p{number}") for number in range(30)]
    trained = [rig.hand_in(person=person) for person in people[:3]]
    failed = [rig.hand_in(rig.script(FAILS), person) for person in people[3:]]
    site.feed("--most", "2")
    for attempt_id in (*trained, *failed):
        rig.wait(attempt_id, AttemptState.JUDGED, within_s=240)
    assert_judged_once(rig, [*trained, *failed])
    assert {rig.facts(attempt_id).tries for attempt_id in (*trained, *failed)} == {1}
    # With nothing left to judge they go, and say that all was well.
    wait_until(lambda: set(site.cluster.states().values()) == {"COMPLETED"}, f"jobs end: {site.logs()}")
    # What is locked lies on the node, and not in the folder that hosts share.
    assert list(Path(rig.settings["GRADER_LOCAL_DIR"]).glob("workers/slurm-*/lock"))
    assert not (rig.folder / "state" / "workers").exists()
    assert len(site.cluster.states()) <= 4, "what a worker can take needs no job of its own"


def _waiting_for(go: Path) -> str:
    return f"""import os, time
print("pid", os.getpid(), flush=True)
while not os.path.exists({str(go)!r}):
    time.sleep(0.1)
raise SystemExit("no")
"""


def test_jobs_that_are_ended_give_back_what_they_have(site: SlurmSite, tmp_path: Path) -> None:
    """One is cancelled, as preemption does it; the other's time is up, earlier than its worker was told.

    Slurm's SIGTERM reaches the ranks of a cancelled job, too: that is no fault of the script.
    """
    rig, states, go = site.rig, site.cluster.states, tmp_path / "go"
    late = rig.hand_in(rig.script(_waiting_for(go)))
    (out_of_time,) = (job for job, _need in site.look()["submitted"])
    rig.wait_running(late)
    # From now on it is within the lead of Slurm's warning.
    site.cluster.shorten(str(out_of_time), minutes=2)
    attempt_id = rig.hand_in(rig.script(_waiting_for(go)), rig.person("ben"))
    (preempted,) = (job for job, _need in site.look()["submitted"])
    rig.wait_running(attempt_id)
    site.cluster.cancel(str(preempted))
    wait_until(lambda: rig.facts(attempt_id).state is AttemptState.QUEUED, f"given back: {site.logs()}", 25)
    wait_until(lambda: states()[str(preempted)] == "CANCELLED", "ended before KillWait was over", 30)
    wait_until(
        lambda: states()[str(out_of_time)] == "COMPLETED", "ended in order before its time was up", 100
    )
    assert rig.facts(late).state is AttemptState.QUEUED
    assert {rig.facts(one).tries for one in (late, attempt_id)} == {0}, (
        "that a worker has to go is no failed try"
    )
    go.touch()
    site.feed("--most", "1")
    for one in (late, attempt_id):
        rig.wait(one, AttemptState.JUDGED)
    assert_judged_once(rig, [late, attempt_id])


def test_a_node_that_dies(site: SlurmSite, tmp_path: Path) -> None:
    rig, go = site.rig, tmp_path / "go"
    attempt_id = rig.hand_in(rig.script(_waiting_for(go)))
    site.feed()
    rig.wait_running(attempt_id)
    site.cluster.kill_node("n1")
    site.cluster.mark_down("n1")
    go.touch()
    # Its lease ends, another job starts on the other node.
    assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 2
    assert_judged_once(rig, [attempt_id])
