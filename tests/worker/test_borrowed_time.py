"""Workers that come for a while: they ask by themselves, take what fits, and end when nothing is left for them."""

from __future__ import annotations

import json
import time

import pytest

from grader.store.tables.attempt import AttemptState
from grader.worker.time_left import SCORING_S, fitting
from tests.worker.conftest import Site
from tests.worker.rig import Rig


def test_what_fits_is_said_by_the_limits_of_the_tasks(rig: Rig) -> None:
    profile = rig.task.profile("cpu")
    assert profile is not None
    needed_s = profile.limits.wall_s + SCORING_S
    limits = ((("ddp-toy", "cpu"), profile.limits.wall_s),)
    assert ("ddp-toy", "cpu") in fitting(needed_s + 1, limits)
    assert ("ddp-toy", "cpu") not in fitting(needed_s, limits)
    assert fitting(0.0, limits) == ()


def test_a_worker_ends_when_it_was_idle_for_long_enough(site: Site) -> None:
    """Without relay and broker: nothing wakes it."""
    rig = site(broker="redis://127.0.0.1:1")
    attempts = [rig.hand_in(), rig.hand_in(person=rig.person("ben"))]
    worker = rig.worker("w1", "--exit-when-idle", "3")
    for attempt_id in attempts:
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert worker.wait(60) == 0
    lines = [json.loads(line) for line in (rig.folder / "w1.log").read_text().splitlines() if line]
    assert any(line["event"] == "idle" for line in lines)


@pytest.mark.slow
def test_a_worker_leaves_to_others_what_it_cannot_finish(site: Site) -> None:
    rig = site()
    attempt_id = rig.hand_in()
    begun = time.monotonic()
    assert rig.worker("w1", "--until", str(time.time() + 60)).wait(60) == 0, rig.logs()
    assert time.monotonic() - begun < 60, "it has no reason to stay"
    facts = rig.facts(attempt_id)
    assert (facts.state, facts.tries) == (AttemptState.QUEUED, 0)
    rig.worker("w2", "--until", str(time.time() + 3600))
    rig.wait(attempt_id, AttemptState.JUDGED)
