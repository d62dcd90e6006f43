"""Rows 44–46: Redis comes back empty, goes away in the middle of an attempt, is slow, or half open."""

from __future__ import annotations

import signal
import time

import pytest

from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.faults.proxy import Proxy
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import SLOW, WITHIN_S, Rig


def judge_one(rig: Rig) -> None:
    """So that the worker is warm, listens, and has nothing left to claim without a hint."""
    rig.wait(rig.hand_in(), AttemptState.JUDGED)
    time.sleep(1.5)


def test_redis_restarts_empty_while_hints_wait(site: Site, redis: Redis) -> None:
    """The hints are gone with it; the attempts are not."""
    rig = site(broker=redis.url)
    rig.relay()
    handed_in = [rig.hand_in() for _ in range(3)]
    time.sleep(2.0)
    redis.stop()
    redis.start()
    rig.worker()
    for attempt_id in handed_in:
        rig.wait(attempt_id, AttemptState.JUDGED)
    assert_judged_once(rig, handed_in)


def test_redis_is_away_in_the_middle_of_an_attempt(site: Site, redis: Redis) -> None:
    # Whoever loses its lease now is heard of only when Redis is back.
    rig = site(broker=redis.url, GRADER_LEASE_S="60")
    rig.relay()
    rig.worker()
    running = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    rig.wait_running(running)
    redis.stop()
    # Handing in needs no broker.
    meanwhile = rig.hand_in()
    rig.wait(running, AttemptState.JUDGED)
    assert rig.facts(running).tries == 1
    redis.start()
    rig.wait(meanwhile, AttemptState.JUDGED)
    assert_judged_once(rig, [running, meanwhile])


@pytest.mark.slow
def test_redis_is_frozen_and_thaws(site: Site, redis: Redis) -> None:
    rig = site(broker=redis.url)
    rig.relay()
    rig.worker()
    judge_one(rig)
    assert redis.process is not None
    redis.process.send_signal(signal.SIGSTOP)
    try:
        meanwhile = rig.hand_in()
        time.sleep(6.0)
        assert rig.facts(meanwhile).state is AttemptState.QUEUED
    finally:
        redis.process.send_signal(signal.SIGCONT)
    rig.wait(meanwhile, AttemptState.JUDGED)
    assert_judged_once(rig, [meanwhile])


@pytest.mark.parametrize("how", [pytest.param("slow", marks=pytest.mark.slow), "half_open"])
def test_the_way_to_redis_is_bad(site: Site, redis: Redis, how: str) -> None:
    with Proxy(redis.port) as proxy:
        rig = site(broker=f"redis://127.0.0.1:{proxy.port}/0")
        rig.relay()
        rig.worker()
        judge_one(rig)
        if how == "slow":
            proxy.delay_s = 0.2
            meanwhile = rig.hand_in()
        else:
            proxy.silent = True
            meanwhile = rig.hand_in()
            time.sleep(12.0)
            proxy.silent = False
        rig.wait(meanwhile, AttemptState.JUDGED, within_s=WITHIN_S)
        assert_judged_once(rig, [meanwhile])
        # On SIGTERM nobody waits for a broker that does not answer.
        proxy.silent = True
        assert rig.end("w1") == 0
