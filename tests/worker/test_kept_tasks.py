"""Workers need no folder of tasks, and editing one stops no judging: attempts keep the version they are for."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from grader.catalog.data.datasets import prepare
from grader.catalog.data.versions import read_manifest
from grader.catalog.tasks.task_folders import load_task
from grader.idx import images_bytes, labels_bytes
from grader.model.grade import Verdict
from grader.settings import in_course, settings
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.courses.task_versions import keep_version
from grader.store.files import open_files
from grader.store.grading import grades
from grader.store.tables.attempt import AttemptState
from tests.store.conftest import Server
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import Rig


def own_course(folder: Path) -> Path:
    """A folder of tasks with a toy of its own."""
    tasks = folder / "course" / "tasks"
    left_out = shutil.ignore_patterns("rejected", "crashed", "deadlocked")
    shutil.copytree(settings().tasks_dir / "ddp-toy", tasks / "ddp-toy", ignore=left_out)
    shutil.copytree(settings().skeletons_dir / "ddp-toy", folder / "course" / "skeletons" / "ddp-toy")
    toml = tasks / "ddp-toy" / "task.toml"
    toml.write_text(toml.read_text() + "\n# A course of its own.\n")
    return tasks


def set_toy(rig: Rig, tasks: Path, file_store: str = "") -> str:
    """Set the toy of that folder, kept in the file store; returns its version."""
    with in_course(tasks):
        task = load_task("ddp-toy")
    keep_version(rig.store, open_files(rig.store, file_store, rig.folder / "state" / "files"), task)
    courses.set_task(rig.store, rig.course, "ddp-toy", "cpu", TaskTerms("Toy", task.version))
    return task.version


def judged_version(rig: Rig, attempt_id: int) -> str:
    grade = grades.grade_of(rig.store, attempt_id)
    assert grade is not None
    version: str = json.loads(grade.document)["task_version"]
    return version


@pytest.mark.slow
def test_an_edited_folder_stops_no_judging(site: Site, redis: Redis, server: Server, tmp_path: Path) -> None:
    """Celery and PostgreSQL: the task's target is edited between handing in and judging."""
    server.sql("CREATE DATABASE versions")
    rig = site(broker=redis.url, database=server.url("versions"), GRADER_FILE_STORE="database")
    tasks = own_course(tmp_path)
    before = set_toy(rig, tasks, "database")
    old = rig.hand_in()
    toml = tasks / "ddp-toy" / "task.toml"
    toml.write_text(toml.read_text().replace("wall_s = 120", "wall_s = 110"))
    with in_course(tasks):
        assert load_task("ddp-toy").version != before
    rig.relay()
    rig.worker("w1", GRADER_TASKS_DIR=str(tasks), GRADER_STATE_DIR=str(tmp_path / "w1"))
    assert rig.wait(old, AttemptState.JUDGED).verdict is Verdict.ACCEPTED
    assert judged_version(rig, old) == before
    # Once staff have taken it over, the new one judges what comes.
    after = set_toy(rig, tasks, "database")
    new = rig.hand_in()
    assert rig.wait(new, AttemptState.JUDGED).verdict is Verdict.ACCEPTED
    assert judged_version(rig, new) == after != before


@pytest.mark.slow
def test_a_remote_worker_fetches_task_and_data(site: Site, tmp_path: Path) -> None:
    """It has neither, and takes what fits into its time all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_DATA_DIR", str(tmp_path / "data"))
        settings.cache_clear()
        there = prepare("fashion-mnist-mini", noise(tmp_path / "noise"))
    settings.cache_clear()
    rig = site(remote=True, GRADER_DATA_DIR=str(tmp_path / "data"))
    tasks = own_course(tmp_path)
    toml = tasks / "ddp-toy" / "task.toml"
    toml.write_text(
        toml.read_text().replace('"digits", "fashion-mnist-mini", "fashion-mnist"', '"fashion-mnist-mini"')
    )
    version = set_toy(rig, tasks)
    handed_in = rig.hand_in()
    (tmp_path / "none").mkdir()
    far = {
        "GRADER_TASKS_DIR": str(tmp_path / "none"),
        "GRADER_STATE_DIR": str(tmp_path / "far"),
        "GRADER_DATA_DIR": str(tmp_path / "far" / "data"),
    }
    rig.worker("w1", "--until", str(time.time() + 3000), **far)
    assert rig.wait(handed_in, AttemptState.JUDGED).verdict is Verdict.ACCEPTED
    assert judged_version(rig, handed_in) == version
    here = read_manifest(tmp_path / "far" / "data" / "fashion-mnist-mini.json")
    assert here is not None
    assert here.version == there.version


def noise(folder: Path) -> Path:
    """Images that nobody else has, in FashionMNIST's layout."""
    folder.mkdir()
    made = np.random.default_rng(0)
    for split, number in (("train", 60), ("t10k", 20)):
        images = made.integers(0, 256, (number, 28, 28), dtype=np.uint8)
        (folder / f"{split}-images-idx3-ubyte").write_bytes(images_bytes(images))
        labels = np.arange(number, dtype=np.int64) % 10
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(labels_bytes(labels))
    return folder
