"""Row 55: a worker that reaches the service alone loses the network in the middle of an attempt."""

from __future__ import annotations

import json

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.faults.proxy import Proxy
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, Rig, wait_until

BRIEF = SLOW.replace("600", "15")


def test_the_network_of_a_remote_worker_is_lost(site: Site) -> None:
    rig = site(remote=True)
    direct, port = rig.server, int(rig.server.rpartition(":")[2])
    with Proxy(port) as proxy:
        rig.server = f"http://127.0.0.1:{proxy.port}"
        rig.worker("far")
        # It is judged to the end meanwhile, and told when there is a network again.
        brief = rig.hand_in(rig.script(BRIEF))
        rig.wait_running(brief)
        proxy.away = True
        wait_until(lambda: _told(rig, "waiting", brief), "it has judged, and nobody answers")
        assert rig.facts(brief).state is AttemptState.RUNNING
        proxy.away = False
        assert rig.wait(brief, AttemptState.JUDGED).tries == 1

        # Away for longer than the lease: somebody else judges it, and what comes late is dropped.
        rig.relay()
        rig.server = direct
        passed_on = rig.hand_in(rig.script(BRIEF))
        rig.wait_running(passed_on)
        proxy.silent = True
        rig.worker("near")
        facts = rig.wait(passed_on, AttemptState.JUDGED)
        assert (facts.worker, facts.tries) == (rig.known_as("near"), 2)
        proxy.silent = False
        wait_until(
            lambda: any(line["ending"] == "stale" for line in _told(rig, "ended", passed_on)),
            "the far one hears that it is too late",
        )
    assert_judged_once(rig, [brief, passed_on])


def _told(rig: Rig, event: str, attempt_id: int) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in (rig.folder / "far.log").read_text().splitlines() if line]
    return [line for line in lines if line["event"] == event and line.get("attempt") == attempt_id]
