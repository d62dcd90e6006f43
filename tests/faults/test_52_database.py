"""Row 52: PostgreSQL restarts in the middle of an attempt; SQLite is locked for longer than anybody waits for it."""

from __future__ import annotations

import signal
import sqlite3
import time

import pytest

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.store.conftest import Server
from tests.worker.conftest import Site
from tests.worker.rig import LEASE_S, SLOW


def test_postgresql_restarts_in_the_middle_of_an_attempt(site: Site, server: Server) -> None:
    server.sql("DROP DATABASE IF EXISTS restarting")
    server.sql("CREATE DATABASE restarting")
    rig = site(database=server.url("restarting"))
    rig.relay()
    rig.worker()
    running = rig.hand_in(rig.script(SLOW.replace("600", "20")))
    waiting = rig.hand_in()
    rig.wait_running(running)
    server.stop(signal.SIGQUIT)
    try:
        time.sleep(LEASE_S + 1.0)
    finally:
        server.start()
    for attempt_id in (running, waiting):
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert_judged_once(rig, [running, waiting])
    assert rig.processes["w1"].poll() is None
    assert rig.processes["relay"].poll() is None


@pytest.mark.slow
def test_sqlite_is_locked_for_longer_than_anybody_waits(site: Site) -> None:
    rig = site()
    rig.relay()
    rig.worker()
    running = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    rig.wait_running(running)
    holder = sqlite3.connect(str(rig.folder / "grader.db"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    time.sleep(13.0)
    holder.execute("ROLLBACK")
    holder.close()
    waiting = rig.hand_in()
    for attempt_id in (running, waiting):
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert_judged_once(rig, [running, waiting])
    assert rig.processes["w1"].poll() is None
    assert rig.processes["relay"].poll() is None
