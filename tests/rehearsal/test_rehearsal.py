"""A rehearsal tells the truth about a deadline: the store's own limits and order decide, and its answer can be no."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from grader import cli
from grader.catalog.tasks.task_folders import load_task
from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.rehearsal import Durations, RehearsalResult, Scenario, recorded, rehearse
from grader.rehearsal.clock import SimulatedClock
from grader.settings import settings
from grader.store import schema
from grader.store.attempts.limits import Limit
from grader.store.clock import now
from grader.store.database import Store
from grader.store.queue import claims, reconciler
from tests.store.campus import Campus, verdict_of

DURATIONS = Durations.assumed(40.0, 8.0)
SCENARIO = Scenario(
    num_learners=12, window_s=400.0, num_gpus=4, need=2, failing=0.55, durations=DURATIONS, num_regrades=4
)


@pytest.fixture(scope="module")
def played() -> RehearsalResult:
    return rehearse(SCENARIO)


def running_at(played: RehearsalResult, at_s: float) -> int:
    return sum(one.claimed_s <= at_s < one.finished_s for one in played.served)


def test_everybody_is_served_in_time(played: RehearsalResult) -> None:
    assert set(played.firsts_s) == set(range(SCENARIO.num_learners))
    assert not played.without
    assert played.met
    assert len(played.regrades_s) == SCENARIO.num_regrades


def test_a_host_never_runs_more_than_it_has_devices_for(played: RehearsalResult) -> None:
    assert (
        max(running_at(played, one.claimed_s) for one in played.served) <= SCENARIO.num_gpus // SCENARIO.need
    )
    assert 0 < played.busy <= 1


def test_failing_attempts_end_early_and_are_handed_in_again(played: RehearsalResult) -> None:
    assert {True, False} == {one.accepted for one in played.served}
    for one in played.served:
        may_take = DURATIONS.whole if one.accepted else DURATIONS.ended
        assert one.finished_s - one.claimed_s in [pytest.approx(seconds) for seconds in may_take]
    most = Counter(one.learner for one in played.served).most_common(1)[0][1]
    assert most > 1, "nobody handed in again"


def test_the_store_s_own_limits_are_in_the_way_of_the_impatient(played: RehearsalResult) -> None:
    assert played.refused.get(Limit.CONCURRENT, 0) > 0
    for one in played.served:
        assert one.queued_s <= SCENARIO.window_s, "nothing is taken after the due date"


def test_the_same_room_gives_the_same_answer_and_another_seed_another(played: RehearsalResult) -> None:
    assert rehearse(SCENARIO) == played
    assert rehearse(replace(SCENARIO, seed=1)).served != played.served


def test_too_few_devices_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["course", "rehearse", "--learners", "10", "--window", "4m", "--gpus", "1", "--need", "1"]
    assert cli.main([*command, "--whole", "90s", "--regrades", "0", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["met"]
    assert told["without_grade"] or told["last_grade_after_window_s"] > told["latest_allowed_after_window_s"]


def test_the_command_prints_what_an_instructor_asks(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["course", "rehearse", "--learners", "4", "--window", "5m", "--gpus", "4", "--regrades", "1"]
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    for words in ("waits", "first grades", "last grade", "Everybody is served in time."):
        assert words in shown
    assert cli.main(["course", "--json", "rehearse", *command[2:]]) == 0
    assert json.loads(capsys.readouterr().out)["learners"] == 4


@pytest.mark.parametrize("bad", [["--need", "8"], ["--learners", "0"]])
def test_a_room_that_cannot_be_is_refused(bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["course", "rehearse", *bad]) == 2


@pytest.mark.parametrize("bad", [["--window", "soon"], ["--failing", "120%"], ["--whole", "0s"]])
def test_figures_that_are_none_are_refused(bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["course", "rehearse", *bad])
    assert stopped.value.code == 2


def test_the_store_lives_by_the_played_clock(tmp_path: Path) -> None:
    clock = SimulatedClock()
    store = clock.open(tmp_path)
    try:
        campus = Campus(store)
        attempt_id = campus.queue(campus.anna)
        first = campus.claim()
        assert first.attempt_id == attempt_id
        clock.forward(claims.LEASE_S - 1)
        assert reconciler.reconcile(store).requeued == 0
        clock.forward(claims.LEASE_S + 1)
        assert reconciler.reconcile(store).requeued == 1, "a lease ends by the played clock, and no sooner"
        with store.read() as connection:
            assert now(connection) - clock.at(0) == timedelta(seconds=claims.LEASE_S + 1)
    finally:
        store.close()


@pytest.fixture
def own_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campus]:
    """This site's database, with a course in it."""
    monkeypatch.setenv("GRADER_DATABASE_URL", f"sqlite:///{tmp_path / 'site.db'}")
    settings.cache_clear()
    store = Store(settings().database)
    schema.upgrade(store)
    yield Campus(store)
    store.close()
    settings.cache_clear()


def test_running_times_come_from_this_site_s_own_attempts(own_site: Campus) -> None:
    with pytest.raises(UsageError, match="--whole"):
        recorded("ddp-toy")
    for verdict in (Verdict.ACCEPTED, Verdict.REJECTED):
        for _ in range(5):
            own_site.judge(own_site.anna, grade=verdict_of(verdict))
    found = recorded("ddp-toy")
    assert (len(found.whole), len(found.ended)) == (5, 5)
    assert "5 accepted and 5 other" in found.source


def test_a_course_says_what_its_deadline_takes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    course = tmp_path / "short.toml"
    course.write_text(
        'name = "short"\ntitle = "Short"\nabout = "Two tasks."\n'
        '[[tasks]]\ntask = "ddp-toy"\nweight = 50\ndue = "2d"\nprofile = "gpu"\nmax_total = 1\n'
        '[[tasks]]\ntask = "ddp-fashion"\nweight = 50\ndue = "1d"\n'
    )
    room = ["--learners", "6", "--window", "6m", "--regrades", "0"]
    cli.main(["course", "rehearse", str(course), *room, "--json"])
    told = json.loads(capsys.readouterr().out)
    gpu = load_task("ddp-toy").profile("gpu")
    assert gpu is not None
    assert (told["task"], told["need"]) == ("ddp-toy", gpu.nproc_per_node * gpu.nnodes)
    assert told["attempts"] == 6, "whoever fails has no other attempt"
    assert told["refused"]
    cli.main(["course", "rehearse", str(course), "--task", "ddp-fashion", *room])
    said = capsys.readouterr().out
    assert "the deadline of ddp-fashion" in said
    assert "4 slots, 1 for each attempt" in said
    assert cli.main(["course", "rehearse", str(course), "--task", "fsdp"]) == 2
    assert "short has no task 'fsdp'; it has ddp-toy, ddp-fashion" in capsys.readouterr().err
