"""Row 54: a deploy ends all workers and relays while attempts run and wait, and starts new ones."""

from __future__ import annotations

import signal

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import SLOW

DEPLOY_S = 90


def test_nothing_is_lost(site: Site, redis: Redis) -> None:
    rig = site(broker=redis.url)
    rig.relay()
    rig.worker("w1", "--slots", "1")
    brief = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    waiting = [rig.hand_in(person=rig.person(f"p{number}")) for number in range(3)]
    rig.wait_running(brief)
    for name in ("w1", "relay"):
        rig.processes[name].send_signal(signal.SIGTERM)
    codes = [rig.processes.pop(name).wait(DEPLOY_S) for name in ("w1", "relay")]
    assert codes == [0, 0]
    assert rig.facts(brief).state is AttemptState.JUDGED, "it had time enough to end"
    rig.relay()
    rig.worker("w1")
    for attempt_id in waiting:
        assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1
    assert_judged_once(rig, [brief, *waiting])
