"""A task with data of its own, and with files beside its evaluate.py, is judged alike in every runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.settings import settings
from tests.acceptance.conftest import Cli
from tests.own_task import write_course
from tests.run.apptainer_absence import MAY_BE_ABSENT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The task of text in a course of its own."""
    home = tmp_path_factory.mktemp("course")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("tasks", "skeletons"):
            (home / name).mkdir()
            patch.setenv(f"GRADER_{name.upper()}_DIR", str(home / name))
        settings.cache_clear()
        yield write_course(home)
    settings.cache_clear()


@pytest.mark.parametrize("runtime", ["process", "docker", pytest.param("apptainer", marks=MAY_BE_ABSENT)])
def test_a_tokenizer_and_a_module_reach_the_scorer(folder: Path, tmp_path: Path, runtime: str) -> None:
    pipeline = Pipeline(runtime)
    test = pipeline.runtime.self_test()
    if not test.usable:
        pytest.skip(f"runtime {runtime}: {test.reason}")
    task = load_task("tiny-text")
    with pipeline:
        accepted = read_submission(folder / "submissions" / "accepted" / "own_shares.py")
        attempt, workspace = pipeline.grade(
            task, accepted, options=Options(timed=False), out=tmp_path / "out"
        )
        assert attempt.grade.verdict.value == "accepted", attempt.grade.findings
        assert attempt.grade.points == 100
        assert not list(workspace.outputs.rglob("tokens.bin"))


def test_the_command_line_prepares_and_lists_it(folder: Path, cli: Cli, cli_env: dict[str, str]) -> None:
    cli_env["GRADER_TASKS_DIR"] = str(folder.parent)
    cli_env["GRADER_SKELETONS_DIR"] = str(folder.parents[1] / "skeletons")
    cli_env["GRADER_STATE_DIR"] = str(folder.parents[1] / "state")
    assert "tiny-text: not prepared (`grader data prepare tiny-text`)" in cli("data", "list").stdout
    given = cli("data", "prepare", "tiny-text", "--from", folder / "corpus.txt", "--json")
    assert json.loads(given.stdout)[0]["name"] == "tiny-text"
    assert "tiny-text: prepared in " in cli("data", "list").stdout
    (folder / "prepare.py").rename(folder / "kept.py")
    try:
        (folder / "prepare.py").write_text(
            "def prepare(out, source, seed):\n    raise ValueError('no words')\n"
        )
        failed = cli("data", "prepare", "tiny-text")
    finally:
        (folder / "kept.py").replace(folder / "prepare.py")
    assert failed.returncode == 3
    assert "The data of tiny-text could not be made: prepare.py:2: ValueError: no words" in failed.stderr


def test_verify_shows_in_containers_what_a_process_hides(
    folder: Path, cli: Cli, cli_env: dict[str, str]
) -> None:
    test = Pipeline("docker").runtime.self_test()
    if not test.usable:
        pytest.skip(test.reason)
    cli_env["GRADER_TASKS_DIR"] = str(folder.parent)
    cli_env["GRADER_SKELETONS_DIR"] = str(folder.parents[1] / "skeletons")
    outside = folder.parents[1] / "factor.txt"
    outside.write_text("1.0")
    evaluate = folder / "evaluate.py"
    text = evaluate.read_text()
    leaning = f".exp().item() * float(Path({str(outside)!r}).read_text())"
    try:
        evaluate.write_text(text.replace(".exp().item()", leaning))
        done = cli("verify", "tiny-text")
        alone = cli("verify", "tiny-text", "--no-containers", "--replay", "--json")
    finally:
        evaluate.write_text(text)
    assert done.returncode == 3
    assert "In docker, where nothing but the task's folder is there" in done.stderr
    assert "FileNotFoundError" in done.stderr
    assert alone.returncode == 0
    assert [case["ok"] for case in json.loads(alone.stdout)["cases"]] == [True, True]
