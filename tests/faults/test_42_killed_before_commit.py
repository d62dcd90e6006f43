"""Row 42: the run has ended and is scored, and the worker dies before it has said so.

Its containers and processes ended with it, so nothing is adopted: the attempt is run again under the next lease and
graded once. What it had stored under its own hash is stored a second time under the same name.
"""

from __future__ import annotations

import os
import signal
import time

from grader.store.attempts import attempts
from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site


def test_killed_between_run_and_commit(site: Site, remote: bool) -> None:
    rig = site(remote=remote)
    rig.relay()
    rig.worker()
    (process,) = rig.worker_processes()
    attempt_id = rig.hand_in()
    files = rig.folder / "state" / "files"
    deadline = time.monotonic() + 120
    # The first file in the store: the run is over, rendering has begun, nothing is committed.
    while not (files.is_dir() and any(files.iterdir())):
        assert time.monotonic() < deadline, rig.logs()
    os.kill(process.pid, signal.SIGKILL)
    assert rig.facts(attempt_id).state is AttemptState.RUNNING, "it was quicker than us"
    rig.wait(attempt_id, AttemptState.JUDGED)
    assert rig.facts(attempt_id).tries == 2
    assert len(attempts.files_of(rig.store, attempt_id)) == 5
    assert_judged_once(rig, [attempt_id])
