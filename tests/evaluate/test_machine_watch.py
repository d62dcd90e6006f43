"""When a measured time is not to be trusted, since others were at work on the same cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from grader.evaluate.time.machine_watch import MachineWatch, undisturbed
from grader.model.run import Ending, RankRecord, RunRecord

START = 1_000_000.0


def record(*cpu_s: float, started_s: float = 0.0, ended_s: float = 10.0) -> RunRecord:
    ranks = tuple(
        RankRecord(rank, 0, False, started_s, ended_s, seconds, 0.0, 1, 0, 0, 0, False, 0, False)
        for rank, seconds in enumerate(cpu_s)
    )
    facts = {"started_unix_s": START}
    return RunRecord(
        "process", "fork", False, len(ranks), Ending.COMPLETED, "", ended_s, 60.0, ranks, (), {}, facts
    )


def watched(*used: tuple[float, float], num_cores: int = 2) -> MachineWatch:
    watch = MachineWatch()
    watch.num_cores, watch.used = num_cores, [(START + at, used_s) for at, used_s in used]
    return watch


def test_what_the_ranks_did_themselves_is_nobodys_disturbance() -> None:
    assert watched((0.0, 500.0), (10.0, 518.0)).free_cores(record(9.0, 9.0)) == 2.0
    # Clocks of different grain may tell a little less than the ranks used.
    assert watched((0.0, 500.0), (10.0, 517.9)).free_cores(record(9.0, 9.0)) == 2.0


def test_what_else_was_computed_meanwhile_is_missing() -> None:
    assert watched((0.0, 500.0), (10.0, 520.0)).free_cores(record(6.0, 6.0)) == pytest.approx(1.2)
    assert watched((0.0, 500.0), (10.0, 600.0), num_cores=64).free_cores(record(6.0, 6.0)) == pytest.approx(
        55.2
    )


def test_only_the_time_of_the_ranks_counts() -> None:
    # Something computes on both cores before the ranks start and after they have ended.
    watch = watched((-3.0, 500.0), (5.0, 516.0), (15.0, 526.0), (30.0, 556.0))
    assert watch.free_cores(record(5.0, 5.0, started_s=5.0, ended_s=15.0)) == pytest.approx(2.0)


def test_where_nothing_is_known_of_others_a_time_is_believed() -> None:
    run = record(6.0, 6.0)
    assert watched().free_cores(run) is None
    assert watched((0.0, 1.0), (10.0, 20.0)).free_cores(replace(run, environment={})) is None
    assert undisturbed(None, 2)


def test_each_rank_needs_nearly_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(4)))
    assert undisturbed(3.9, 2)
    assert undisturbed(1.9, 2)
    assert not undisturbed(1.5, 2)
    # More ranks than cores take turns anyway.
    assert undisturbed(3.9, 8)
    assert not undisturbed(3.0, 8)


def test_a_neighbour_on_this_machine_is_seen() -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with MachineWatch() as watch:
            began = time.time()
            time.sleep(1.5)
            ended = time.time()
    finally:
        neighbour.kill()
        neighbour.wait()
    run = record(0.0, ended_s=ended - began)
    free = watch.free_cores(replace(run, environment={"started_unix_s": began}))
    assert free is not None
    assert free < watch.num_cores - 0.1
