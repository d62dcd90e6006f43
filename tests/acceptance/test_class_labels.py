"""Classes have numbers of their own in every attempt, and nowhere in a container is there any word of others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.evaluate.files.measurement_files import read_stored
from grader.idx import read_split
from grader.model.evaluation import Evaluation
from grader.model.run_options import Options, Setting
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.pipeline import Pipeline
from grader.run.workspace import Workspace
from tests.run.apptainer_absence import MAY_BE_ABSENT

RAW = Path("FashionMNIST") / "raw"
SPLITS = ("train", "t10k")
TELLS = """
import hashlib, os, shutil
raw = os.path.join(os.environ["DATA_DIR"], "FashionMNIST", "raw")
for split in ("train", "t10k"):
    shutil.copy(os.path.join(raw, split + "-labels-idx1-ubyte"), os.environ["OUTPUT_DIR"])
for path in (raw, os.path.join(raw, "train-labels-idx1-ubyte")):
    try:
        os.chmod(path, 0o777)
    except OSError:
        pass
    print(os.access(path, os.W_OK))
KNOWN = @KNOWN@
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        try:
            if os.path.isfile(path) and os.path.getsize(path) in KNOWN:
                if hashlib.sha256(open(path, "rb").read()).hexdigest() in KNOWN.values():
                    print("there is", path)
        except OSError:
            pass
"""
Told = tuple[Evaluation, dict[str, list[int]], str]


@pytest.fixture(scope="module", params=["process", "docker", pytest.param("apptainer", marks=MAY_BE_ABSENT)])
def pipeline(request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    made = Pipeline(request.param)
    test = made.runtime.self_test()
    if not test.usable:
        pytest.skip(f"runtime {request.param}: {test.reason}")
    with made:
        yield made


def setting_of(pipeline: Pipeline, task: Task) -> Setting:
    return pipeline.setting(task, Options(dataset="digits", timed=False))


def told(pipeline: Pipeline, task: Task, out: Path) -> Told:
    """The evaluation of an attempt that only looks around, the labels that it found, and what it printed."""
    data = setting_of(pipeline, task).dataset
    prepared = [
        side / RAW / f"{split}-labels-idx1-ubyte"
        for side in (data.visible_dir, data.hidden_dir)
        for split in SPLITS
        if (side / RAW / f"{split}-labels-idx1-ubyte").exists()
    ]
    known = {path.stat().st_size: hashlib.sha256(path.read_bytes()).hexdigest() for path in prepared}
    text = f"# {out.name}\n{TELLS.replace('@KNOWN@', repr(known))}"
    script = Submission("tells", (SourceFile("train.py", text),))
    options = Options(dataset="digits", timed=False, nproc_per_node=1)
    _, workspace = pipeline.grade(task, script, options=options, out=out)
    found = {}
    for split in SPLITS:
        content = (workspace.outputs / f"{split}-labels-idx1-ubyte").read_bytes()
        found[split] = list(content[8:])
    evaluation = read_stored(Workspace(out).evaluation, Evaluation)
    assert evaluation is not None
    return evaluation, found, workspace.log(0, "out").read_text()


def test_submissions_have_labels_of_their_own_and_containers_know_no_others(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    task = load_task("ddp-fashion")
    data = setting_of(pipeline, task).dataset
    numberings = set()
    for attempt in ("first", "second"):
        evaluation, found, printed = told(pipeline, task, tmp_path / attempt)
        for split in SPLITS:
            prepared = read_split(data.visible_dir / RAW, split)[1]
            assert found[split] == [evaluation.class_labels[label] for label in prepared]
        assert sorted(evaluation.class_labels) == list(range(10))
        numberings.add(evaluation.class_labels)
        if pipeline.runtime.isolates:
            assert printed.splitlines() == ["False", "False"]
    assert len(numberings) == 2


def test_a_task_that_says_no_keeps_the_labels(pipeline: Pipeline, tmp_path: Path) -> None:
    task = replace(load_task("ddp-fashion"), permute_labels=False)
    data = setting_of(pipeline, task).dataset
    evaluation, found, _ = told(pipeline, task, tmp_path / "attempt")
    assert evaluation.class_labels == ()
    for split in SPLITS:
        assert found[split] == list(read_split(data.visible_dir / RAW, split)[1])


def test_the_reference_reaches_all_points_under_any_numbering(pipeline: Pipeline, tmp_path: Path) -> None:
    task = load_task("ddp-fashion")
    reference = read_submission(task.folder / "submissions" / task.reference)
    options = Options(dataset="digits", timed=False)
    attempt, _ = pipeline.grade(task, reference, options=options, out=tmp_path / "attempt")
    assert (attempt.grade.verdict, attempt.grade.points) == ("accepted", 100)
    assert attempt.evaluation is not None
    assert attempt.evaluation.class_labels
