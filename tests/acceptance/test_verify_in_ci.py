"""`grader verify` on CI machines: without their clock, in shards, after a change, and with evidence that is kept."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.model.task import Task
from grader.pipeline import Pipeline
from grader.promises.kept_evidence import run_key
from tests.acceptance.conftest import CHECKOUT, Cli

QUICK = "rejected/no_process_group"


@pytest.fixture
def own(cli: Cli, cli_env: dict[str, str], tmp_path: Path) -> Cli:
    """The command line on a copy of one task and a state folder of its own."""
    shutil.copytree(CHECKOUT / "tasks" / "ddp-toy", tmp_path / "tasks" / "ddp-toy")
    cli_env["GRADER_TASKS_DIR"] = str(tmp_path / "tasks")
    cli_env["GRADER_STATE_DIR"] = str(tmp_path / "state")
    return cli


def verify(cli: Cli, reuse: str = "--cache", code: int = 0) -> list[dict[str, Any]]:
    result = cli("verify", "--only", QUICK, reuse, "--no-time", "--json")
    assert result.returncode == code, result.stdout + result.stderr
    cases = json.loads(result.stdout)["cases"]
    assert isinstance(cases, list)
    return cases


def test_evidence_is_judged_again_until_something_that_runs_changes(own: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "evidence" / "ddp-toy" / "rejected" / "no_process_group"
    (first,) = verify(own)
    assert not first["cached"]
    assert len(list(kept.iterdir())) == 1
    (again,) = verify(own)
    assert again["cached"]
    assert {**again, "cached": False, "seconds": 0} == {**first, "seconds": 0}
    shown = own("verify", "--only", QUICK, "--cache", "--no-time")
    assert "judged again" in shown.stdout
    assert "warm up" not in shown.stderr, "nothing has to be started"

    # What judges may change: nothing is run, and what it does to the outcome is told.
    toml = tmp_path / "tasks" / "ddp-toy" / "task.toml"
    text = toml.read_text()
    toml.write_text(re.sub(r'title = "([^"]*)"', r'title = "\1, once more"', text))
    (replayed,) = verify(own, reuse="--replay")
    assert (replayed["cached"], replayed["ok"]) == (True, True)
    assert replayed["effects"] == ["other words or figures in the report"]
    assert "other words or figures" in own("verify", "--only", QUICK, "--replay", "--no-time").stdout
    toml.write_text(text)

    script = next((tmp_path / "tasks" / "ddp-toy" / "submissions" / "rejected").glob("no_process_group.*"))
    script.write_text(script.read_text() + "\n# another line\n")
    (missing,) = verify(own, reuse="--replay")
    assert "No evidence is kept" in missing["skipped"]
    assert "Changed since it was run: the submission." in missing["skipped"]
    (changed,) = verify(own)
    assert not changed["cached"]


def test_what_decides_evidence_is_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("ddp-toy")
    (promised, other) = [p for p in submissions_of(task) if p.name in {QUICK, "accepted/flat_script"}]
    submission = promised.submission
    changed = Submission(submission.name, (replace(submission.files[0], text="print()\n"),))
    pipeline = Pipeline("process")

    def key(
        task: Task = task, submission: Submission = submission, runtime: str = "process", **options: Any
    ) -> str:
        setting = pipeline.setting(task, Options(dataset="digits", **options))
        return run_key(setting, submission, runtime).hex

    (cpu,) = (profile for profile in task.profiles if profile.name == "cpu")
    others = tuple(profile for profile in task.profiles if profile is not cpu)
    shorter = replace(cpu, limits=replace(cpu.limits, wall_s=1.0))
    found = [
        key(),
        key(submission=other.submission),
        key(submission=changed),
        key(task=replace(task, name="another")),
        key(task=replace(task, profiles=(shorter, *others))),
        key(task=replace(task, scored=not task.scored)),
        key(nproc_per_node=3),
        key(profile="gpu"),
        key(launcher="torchrun"),
        key(seed=1),
        key(timed=False),
        key(runtime="docker"),
    ]
    monkeypatch.setattr("grader.promises.kept_evidence._running_code", lambda: {"grader/probe": "other code"})
    found.append(key())
    assert len(set(found)) == len(found)
    monkeypatch.undo()
    # What judges is not: rubric, targets and text may change, and the run stays what it was.
    assert key(task=replace(task, rubric=(), targets=(), title="other", version="2" * 64)) == found[0]


def test_a_broken_promise_is_never_kept(own: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "ddp-toy" / "submissions"
    text = (folder / "accepted" / "flat_script.py").read_text()
    for path in (folder / "rejected").glob("no_process_group*"):
        path.unlink()
    (folder / "rejected" / "no_process_group_at_all.py").write_text(text)
    (case,) = verify(own, code=1)
    assert not case["cached"]
    assert not (tmp_path / "state" / "evidence").exists()


def test_damaged_evidence_is_none(own: Cli, tmp_path: Path) -> None:
    verify(own)
    (entry,) = (tmp_path / "state" / "evidence").rglob("*.tar.gz")
    for content in (b"", b"no archive", entry.read_bytes()[:2000]):
        entry.write_bytes(content)
        (case,) = verify(own, reuse="--replay")
        assert "No evidence is kept" in case["skipped"]


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
    assert [item["state"] for item in grade["rubric"] if item["id"] == "time"] == ["not_shown"]
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
