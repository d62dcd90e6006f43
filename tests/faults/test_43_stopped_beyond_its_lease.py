"""Row 43: a worker is frozen for longer than its lease, and thaws when somebody else has judged."""

from __future__ import annotations

import json
import os
import signal

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, wait_until


def test_a_frozen_worker_is_refused_when_it_thaws(site: Site, remote: bool) -> None:
    rig = site(remote=remote)
    rig.relay()
    rig.worker("frozen")
    attempt_id = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    rig.wait_running(attempt_id)
    (process,) = rig.worker_processes("frozen")
    os.kill(process.pid, signal.SIGSTOP)
    try:
        rig.worker("other")
        facts = rig.wait(attempt_id, AttemptState.JUDGED)
        assert (facts.worker, facts.tries) == (rig.known_as("other"), 2)
    finally:
        os.kill(process.pid, signal.SIGCONT)

    def refused() -> bool:
        lines = [json.loads(line) for line in (rig.folder / "frozen.log").read_text().splitlines() if line]
        return any(line.get("ending") == "stale" for line in lines)

    wait_until(refused, "the thawed worker hears that it is too late")
    assert_judged_once(rig, [attempt_id])
    # It is as good as before.
    rig.end("other")
    again = rig.hand_in()
    assert rig.wait(again, AttemptState.JUDGED).worker == rig.known_as("frozen")
