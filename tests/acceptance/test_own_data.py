"""A task with data of its own, and with files beside its evaluate.py, is judged alike in every runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions import read_submission
from grader.catalog.tasks import load_task
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.settings import settings
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
