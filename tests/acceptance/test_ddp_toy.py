"""The first task of the course: what its skeleton lacks is said in plain words, and the course's own code passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.report.html.attempt_page import to_html
from tests import promised
from tests.acceptance.conftest import CHECKOUT, Cli

TASK = CHECKOUT / "tasks" / "ddp-toy"
SKELETON = CHECKOUT / "skeletons" / "ddp-toy" / "train.py"


def grade(cli: Cli, path: Path, out: Path, *more: str) -> tuple[int, dict[str, Any]]:
    result = cli("grade", "ddp-toy", path, "--json", "--out", out, *more)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_the_unchanged_skeleton_is_told_what_to_do_first(cli: Cli, tmp_path: Path) -> None:
    code, told = grade(cli, SKELETON, tmp_path / "out")
    assert (code, told["verdict"]) == (1, "rejected")
    assert [f["code"] for f in told["findings"]] == ["DIST001"]
    (finding,) = told["findings"]
    assert "never joined a process group" in finding["message"]
    assert "init_process_group" in finding["hint"]
    assert "DistributedDataParallel" in finding["hint"]
    assert finding["line"] == next(
        n for n, line in enumerate(SKELETON.read_text().splitlines(), 1) if "optimizer.step()" in line
    )
    lost = {item["id"] for item in told["rubric"] if item["state"] == "lost"}
    assert lost == {"process-group", "wrap", "gradients"}
    assert told["points"] < told["max_points"] / 3


@pytest.mark.parametrize("name", ["seed_003", "seed_004"])
def test_the_course_s_own_code_is_accepted(name: str, cli: Cli, tmp_path: Path) -> None:
    code, told = grade(cli, promised.script("ddp-toy", f"accepted/{name}", tmp_path), tmp_path / "out")
    assert (code, told["verdict"]) == (0, "accepted")
    assert not [f for f in told["findings"] if f["severity"] == "error"]
    # The lecture lets every rank speak, and nothing here says that it must not.
    assert "IO002" not in {f["code"] for f in told["findings"]}


def test_a_group_that_is_never_taken_down_costs_its_points_and_no_more(cli: Cli, tmp_path: Path) -> None:
    script = promised.script("ddp-toy", "accepted/never_destroyed", tmp_path)
    code, told = grade(cli, script, tmp_path / "out")
    assert code == 0
    assert [(f["code"], f["severity"]) for f in told["findings"]] == [("DIST002", "warning")]
    # A twentieth of the task; the item that no CPU can show leaves its points to the others.
    assert told["points"] == 94.4


def test_samples_instead_of_random_numbers(cli: Cli, tmp_path: Path) -> None:
    text = promised.text("ddp-toy", "accepted/launcher_variables")
    script = tmp_path / "train.py"
    for old, new in (
        ("import os\n", "import os\n\nfrom torchvision import datasets\n"),
        ("nn.Linear(10, 10)", "nn.Linear(784, 10)"),
        (
            "    for step in range(STEPS):\n",
            """\
    images = datasets.FashionMNIST(os.environ["DATA_DIR"]).data.float().flatten(1) / 255
    for step in range(STEPS):
""",
        ),
        (
            "torch.randn(BATCH_SIZE, 10, device=device)",
            "images[torch.randint(len(images), (BATCH_SIZE,))].to(device)",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    script.write_text(text)
    code, told = grade(cli, script, tmp_path / "out")
    assert (code, told["findings"]) == (0, [])


def test_weights_that_nobody_scores_are_looked_at_all_the_same(tmp_path: Path) -> None:
    text = promised.text("ddp-toy", "accepted/trainer_class")
    assert text.count("self.model.module.state_dict()") == 1
    script = tmp_path / "train.py"
    script.write_text(text.replace("self.model.module.state_dict()", "{'weight': torch.zeros(3)}"))
    task = load_task("ddp-toy")
    with Pipeline() as pipeline:
        attempt, _ = pipeline.grade(
            task, read_submission(script), options=Options(), out=tmp_path / "attempt"
        )
    assert attempt.grade.verdict == "accepted"
    assert any("No points depend on it" in note for note in attempt.grade.notes)
    # No accuracy, no target, no data to learn from: the report still renders, and shows no gauge for them.
    assert "Accuracy on unseen data" not in to_html(attempt)
