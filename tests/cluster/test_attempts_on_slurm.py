"""A class whose attempts are judged by jobs of a real Slurm, and what clusters do to jobs: nothing lost, nothing twice."""

from __future__ import annotations

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
