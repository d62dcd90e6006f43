"""A class that jobs of a real Slurm judge, and what clusters do to jobs: nothing is lost, and nothing judged twice."""

from __future__ import annotations

from pathlib import Path

from grader.store.tables.attempt import AttemptState
from tests.cluster.slurm_site import SlurmSite
from tests.faults.judged import assert_judged_once
from tests.worker.rig import wait_until

FAILS = 'raise SystemExit("no")'


def test_a_class_of_thirty(site: SlurmSite) -> None:
    """Three of them train; of all others it is the number that matters."""
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
    assert len(site.cluster.states()) <= 4, "what a worker can take needs no job of its own"


def _waiting_for(go: Path) -> str:
    return f"""import os, time
print("pid", os.getpid(), flush=True)
while not os.path.exists({str(go)!r}):
    time.sleep(0.1)
raise SystemExit("no")
"""


def test_a_cancelled_job_gives_back_what_it_has(site: SlurmSite, tmp_path: Path) -> None:
    """Slurm's SIGTERM reaches the ranks, too: that is no fault of the script."""
    rig, go = site.rig, tmp_path / "go"
    attempt_id = rig.hand_in(rig.script(_waiting_for(go)))
    site.look()
    rig.wait_running(attempt_id)
    job = site.running_job()
    site.cluster.cancel(job)
    wait_until(lambda: rig.facts(attempt_id).state is AttemptState.QUEUED, f"given back: {site.logs()}", 25)
    wait_until(lambda: site.cluster.states()[job] == "CANCELLED", "ended before KillWait was over", 40)
    assert rig.facts(attempt_id).tries == 0, "a worker that has to go is no failed try"
    go.touch()
    site.feed()
    rig.wait(attempt_id, AttemptState.JUDGED)
    assert_judged_once(rig, [attempt_id])


def test_time_that_is_up_in_the_middle_of_an_attempt(site: SlurmSite, tmp_path: Path) -> None:
    """A worker that was told more than it gets; by itself it begins nothing that could last longer."""
    rig, go = site.rig, tmp_path / "go"
    attempt_id = rig.hand_in(rig.script(_waiting_for(go)))
    site.look("--sbatch=--time=1", "--sbatch=--signal=B:TERM@1")
    rig.wait_running(attempt_id)
    job = site.running_job()
    wait_until(lambda: rig.facts(attempt_id).state is AttemptState.QUEUED, f"given back: {site.logs()}", 90)
    wait_until(lambda: site.cluster.states()[job] == "COMPLETED", "ended in order")
    go.touch()
    site.feed()
    rig.wait(attempt_id, AttemptState.JUDGED)
    assert_judged_once(rig, [attempt_id])


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
