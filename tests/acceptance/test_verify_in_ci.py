"""`grader verify` on CI machines: without their clock, in shards, after a change, and with outcomes that are known."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.catalog import load_task, submissions_of
from grader.model.promise import PromisedSubmission
from grader.model.task import Task
from grader.pipeline import Options, Pipeline
from grader.verify import deciding_facts
from tests.acceptance.conftest import CHECKOUT, Cli

QUICK = "rejected/no_process_group"


@pytest.fixture
def own(cli: Cli, cli_env: dict[str, str], tmp_path: Path) -> Cli:
    """The command line on a copy of one task and a state folder of its own."""
    shutil.copytree(CHECKOUT / "tasks" / "ddp-toy", tmp_path / "tasks" / "ddp-toy")
    cli_env["GRADER_TASKS_DIR"] = str(tmp_path / "tasks")
    cli_env["GRADER_STATE_DIR"] = str(tmp_path / "state")
    return cli


def verify(cli: Cli, *options: str | Path, code: int = 0) -> list[dict[str, Any]]:
    result = cli("verify", "--only", QUICK, "--cache", "--no-time", "--json", *options)
    assert result.returncode == code, result.stdout + result.stderr
    cases = json.loads(result.stdout)["cases"]
    assert isinstance(cases, list)
    return cases


def test_a_known_outcome_is_taken_until_something_that_decides_it_changes(own: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "outcomes"
    (first,) = verify(own)
    assert not first["cached"]
    assert len(list(kept.iterdir())) == 1
    (again,) = verify(own)
    assert again["cached"]
    assert {**again, "cached": False, "seconds": 0} == {**first, "seconds": 0}
    shown = own("verify", "--only", QUICK, "--cache", "--no-time")
    assert "cached" in shown.stdout
    assert "1 of them known from earlier" in shown.stdout
    assert "warm up" not in shown.stderr, "nothing has to be started"

    script = next((tmp_path / "tasks" / "ddp-toy" / "submissions" / "rejected").glob("no_process_group.py"))
    script.write_text(script.read_text() + "\n# another line\n")
    (changed,) = verify(own)
    assert not changed["cached"]


def test_what_decides_an_outcome_is_part_of_what_it_is_kept_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_task("ddp-toy")
    (promised, other) = [p for p in submissions_of(task) if p.name in {QUICK, "accepted/flat_script"}]

    def facts(task: Task = task, promised: PromisedSubmission = promised, **options: Any) -> str:
        return json.dumps(
            deciding_facts(Pipeline(Options(dataset="digits", **options), print), task, promised)
        )

    script = tmp_path / "no_process_group.py"
    script.write_text(promised.path.read_text() + "\n")
    found = [
        facts(),
        facts(promised=other),
        facts(promised=replace(promised, path=script)),
        facts(promised=replace(promised, name="crashed/no_process_group")),
        facts(task=replace(task, version="another")),
        facts(task=replace(task, name="another")),
        facts(nproc_per_node=3),
        facts(profile="gpu"),
        facts(launcher="torchrun"),
        facts(seed=1),
        facts(timed=False),
    ]
    monkeypatch.setattr(Pipeline, "calibrated", lambda self, setting: "2030-01-01")
    found.append(facts())
    assert facts(timed=False) == found[-2], "what time is held against does not matter where it is left out"
    assert len(set(found)) == len(found)


def test_a_broken_promise_is_never_kept(own: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "ddp-toy" / "submissions"
    shutil.copy(folder / "rejected" / "never_wrapped.py", folder / "rejected" / "no_process_group_at_all.py")
    (folder / "rejected" / "no_process_group.py").unlink()
    text = (folder / "rejected" / "no_process_group_at_all.py").read_text()
    (folder / "rejected" / "no_process_group_at_all.py").write_text(
        "\n".join(line.partition("# <-")[0] for line in text.splitlines() if "# expect:" not in line) + "\n"
    )
    (case,) = verify(own, code=1)
    assert not case["cached"]
    assert not (tmp_path / "state" / "outcomes").exists()


def test_without_time_nothing_is_calibrated_and_time_leaves_the_total(
    cli: Cli, cli_env: dict[str, str], tmp_path: Path
) -> None:
    state, keep = tmp_path / "state", tmp_path / "kept"
    cli_env["GRADER_STATE_DIR"] = str(state)
    result = cli(
        "verify", "ddp-fashion", "--only", "rejected/no_set_epoch", "--no-time", "--keep", keep, "--json"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "calibrate" not in result.stderr
    assert not (state / "calibration").exists()
    (attempt,) = keep.iterdir()
    assert cli("regrade", attempt).returncode == 1
    grade = json.loads((attempt / "grade.json").read_text())
    assert "time" not in {item["id"] for item in grade["rubric"]}
    assert grade["metrics"]["time_target_s"] is None
    assert any("Time targets were left out" in note for note in grade["notes"])


def test_what_only_the_clock_would_reject_is_skipped_without_it(
    cli: Cli, cli_env: dict[str, str], tmp_path: Path
) -> None:
    task = tmp_path / "tasks" / "ddp-fashion"
    shutil.copytree(CHECKOUT / "tasks" / "ddp-fashion", task)
    toml = task / "task.toml"
    toml.write_text(toml.read_text().replace('id = "time"\n', 'id = "time"\nmust = true\n'))
    shutil.copy(
        task / "submissions" / "accepted" / "distributed_sampler.py",
        task / "submissions" / "rejected" / "late.py",
    )
    cli_env["GRADER_TASKS_DIR"] = str(tmp_path / "tasks")
    result = cli("verify", "ddp-fashion", "--only", "rejected/late", "--no-time", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    (case,) = json.loads(result.stdout)["cases"]
    assert case["ok"]
    assert "its time, which was left out" in case["skipped"]


def test_shards_that_are_left_nothing_are_no_mistake(cli: Cli, tmp_path: Path) -> None:
    result = cli(
        "verify", "ddp-toy", "--only", QUICK, "--shard", "2/2", "--junit", "j.xml", "--markdown", "m.md"
    )
    assert result.returncode == 0, result.stderr
    assert "nothing to verify" in result.stdout
    assert 'tests="0"' in (tmp_path / "j.xml").read_text()
    assert "nothing to verify" in (tmp_path / "m.md").read_text()


def test_wishes_that_cannot_be_met_are_told(cli: Cli) -> None:
    for options, word in (
        (("--shard", "3/2"), "--shard"),
        (("--shard", "two"), "I/N"),
        (("--changed-since", "nowhere"), "--changed-since"),
        (("--repeat", "2", "--cache"), "--cache"),
        (("--only", "no-such-thing"), "no submission matches"),
    ):
        result = cli("verify", "ddp-toy", *options)
        assert result.returncode == 2, result.stdout + result.stderr
        assert word in result.stderr
        assert "Traceback" not in result.stderr
