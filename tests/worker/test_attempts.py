"""What becomes of an attempt: handed in, judged by a worker, its report and its evidence kept."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from grader.judging.judge import regrade
from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.run.workspace import Workspace
from grader.store.attempts import attempt_endings, attempts
from grader.store.courses.courses import TaskTerms, set_task
from grader.store.files import open_files
from grader.store.grading import grades
from grader.store.queue.queue import drain_worker, queue_state
from grader.store.tables.attempt import AttemptState
from tests.store.conftest import Server
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import SLOW, Rig, wait_until

FILES = {"report.html", "report-staff.html", "grade.json", "grade-learner.json", "evidence.tar.gz"}


def test_a_submission_is_judged_and_its_reports_are_kept(rig: Rig, tmp_path: Path) -> None:
    good, flawed = rig.hand_in(), rig.hand_in(rig.toy("rejected/never_wrapped"))
    rig.wait(good, AttemptState.JUDGED)
    rig.wait(flawed, AttemptState.JUDGED)
    assert rig.facts(good).verdict is Verdict.ACCEPTED
    assert rig.facts(flawed).verdict is Verdict.REJECTED

    kinds = [one.kind for one in rig.events(flawed)]
    assert kinds[:2] == ["queued", "claimed"]
    assert kinds[-1] == "judged"
    phases = [one.data["phase"] for one in rig.events(flawed, "phase")]
    assert phases == ["prepare", "run", "evaluate", "report"]

    kept = {one.name: one for one in attempts.files_of(rig.store, flawed)}
    assert set(kept) == FILES
    files = open_files(rig.store, "", rig.folder / "state" / "files")
    learner, staff = (files.get(kept[name].digest).decode() for name in ("grade-learner.json", "grade.json"))
    grade = grades.grade_of(rig.store, flawed)
    assert grade is not None
    assert grade.document == staff
    assert json.loads(learner)["verdict"] == "rejected"
    assert b"<html" in files.get(kept["report.html"].digest)[:200]

    # What is kept of the evidence is enough to judge again, to the byte.
    with tarfile.open(fileobj=io.BytesIO(files.get(kept["evidence.tar.gz"].digest))) as archive:
        # The first Pythons 3.11 know no filter; it is our own archive.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path, **safe)
    again = regrade(Workspace(tmp_path / "attempt"), rig.task)
    assert to_json(again.grade, audience=Audience.STAFF) == staff


def test_many_hosts_need_only_broker_database_and_file_store(
    site: Site, redis: Redis, server: Server
) -> None:
    """Two workers without a shared folder: PostgreSQL, Redis, and files in the database."""
    server.sql("CREATE DATABASE hosts")
    rig = site(broker=redis.url, database=server.url("hosts"), GRADER_FILE_STORE="database")
    rig.relay()
    for name in ("w1", "w2"):
        rig.worker(name, GRADER_STATE_DIR=str(rig.folder / name))
    people = [rig.person(f"p{number}") for number in range(4)]
    handed_in = [rig.hand_in(person=person) for person in people]
    for attempt_id in handed_in:
        assert rig.wait(attempt_id).verdict is Verdict.ACCEPTED
        assert {one.name for one in attempts.files_of(rig.store, attempt_id)} == FILES
    files = open_files(rig.store, "database", rig.folder)
    (report,) = [one for one in attempts.files_of(rig.store, handed_in[0]) if one.name == "report.html"]
    assert b"<html" in files.get(report.digest)[:200]
    for name in ("w1", "w2"):
        assert rig.end(name) == 0


def test_what_a_run_prints_is_seen_while_it_runs(rig: Rig) -> None:
    attempt_id = rig.hand_in(rig.script(SLOW))
    rig.wait_running(attempt_id)
    wait_until(lambda: len(rig.events(attempt_id, "log")) >= 4, "more is told while it runs")
    facts = rig.facts(attempt_id)
    assert (facts.state, facts.phase) == (AttemptState.RUNNING, "run")
    said = rig.events(attempt_id, "log")
    assert {(one.data["rank"], one.data["stream"]) for one in said} >= {(0, "stdout"), (1, "stdout")}
    attempt_endings.cancel(rig.store, attempt_id, actor_id=None)
    rig.wait(attempt_id, AttemptState.CANCELLED)


def test_a_cancel_ends_the_run_and_its_processes(rig: Rig) -> None:
    attempt_id = rig.hand_in(rig.script(SLOW))
    pid = rig.wait_running(attempt_id)
    assert psutil.pid_exists(pid)
    assert (
        attempt_endings.cancel(rig.store, attempt_id, actor_id=rig.anna)
        is attempt_endings.CancelResult.REQUESTED
    )
    rig.wait(attempt_id, AttemptState.CANCELLED)
    assert not psutil.pid_exists(pid), "the learner's process runs on"
    assert grades.grade_of(rig.store, attempt_id) is None
    # The worker is free again, and as good as before.
    assert rig.wait(rig.hand_in()).verdict is Verdict.ACCEPTED


def test_epochs_of_a_training_run_are_told(rig: Rig) -> None:
    script = """
import os, time, torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
dist.init_process_group("gloo")
loader = DataLoader(TensorDataset(torch.randn(32, 10)), batch_size=8)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        time.sleep(0.15)
dist.destroy_process_group()
"""
    attempt_id = rig.hand_in(rig.script(script))
    rig.wait(attempt_id)
    told = [one.data for one in rig.events(attempt_id, "epoch")]
    assert [one["epoch"] for one in told] == sorted(one["epoch"] for one in told)
    assert told[-1]["epoch"] == 4
    assert 0 < told[-1]["loss"] < 10


@pytest.mark.parametrize("drained", [False, True], ids=["sigterm", "drain"])
def test_a_worker_that_is_to_end_finishes_what_it_has(site: Site, drained: bool) -> None:
    rig = site()
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in(rig.script(SLOW.replace("600", "20")))
    waiting = rig.hand_in(person=rig.person("ben"))
    rig.wait_running(attempt_id)
    if drained:
        assert drain_worker(rig.store, "w1", actor_id=None)
        code = rig.processes.pop("w1").wait(90)
    else:
        code = rig.end("w1")
    assert code == 0
    assert rig.facts(attempt_id).state is AttemptState.JUDGED
    assert rig.facts(waiting).state is AttemptState.QUEUED, "it took something more"
    assert queue_state(rig.store).workers == ()


def test_what_takes_too_long_for_a_deploy_goes_back_without_losing_a_try(site: Site) -> None:
    rig = site()
    rig.relay()
    rig.worker("w1", "--grace", "1")
    attempt_id = rig.hand_in(rig.script(SLOW))
    pid = rig.wait_running(attempt_id)
    assert rig.end("w1") == 0
    assert not psutil.pid_exists(pid)
    facts = rig.facts(attempt_id)
    assert (facts.state, facts.tries) == (AttemptState.QUEUED, 0)


def test_a_worker_that_can_read_no_task_takes_itself_out_and_comes_back(site: Site, data: Path) -> None:
    rig = site()
    elsewhere, tasks = rig.folder / "data", rig.folder / "tasks"
    rig.relay()
    # Without any folder of tasks it would be given them; here somebody has broken the one there is.
    (tasks / "ddp-toy").mkdir(parents=True)
    (tasks / "ddp-toy" / "task.toml").write_text("title = ")
    rig.worker("w1", GRADER_DATA_DIR=str(elsewhere), GRADER_TASKS_DIR=str(tasks))
    attempt_id = rig.hand_in()

    def listed() -> tuple[str, ...] | None:
        workers = queue_state(rig.store).workers
        return workers[0].needs or ("none",) if workers else None

    assert wait_until(listed, "the worker reports") == ("none",)
    assert rig.facts(attempt_id).state is AttemptState.QUEUED
    elsewhere.symlink_to(data)
    shutil.rmtree(tasks)
    tasks.symlink_to(rig.task.folder.parent)
    assert rig.wait(attempt_id).verdict is Verdict.ACCEPTED
    assert rig.facts(attempt_id).tries == 1
    wait_until(lambda: listed() == ("cpu",), "it is back")


def test_another_version_of_the_task_is_refused_and_staff_are_told_why(site: Site) -> None:
    rig = site()
    set_task(rig.store, rig.course, "ddp-toy", "cpu", TaskTerms(title="Toy", version="0" * 64))
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in()
    facts = rig.wait(attempt_id, AttemptState.FAILED)
    assert "version 000000000000 is wanted, which was never kept here" in str(facts.failure)
    assert grades.grade_of(rig.store, attempt_id) is None


def test_figures_of_a_worker(rig: Rig) -> None:
    judged = 'grader_worker_attempts_total{ending="judged",verdict="accepted",worker="w1"}'

    def figures() -> dict[str, float]:
        try:
            text = httpx.get(f"http://127.0.0.1:{rig.metrics_port}/metrics").text
        except httpx.TransportError:
            return {}
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _space, value in (line.rpartition(" ") for line in lines)}

    before: dict[str, float] = wait_until(figures, "figures")
    assert before['grader_worker_slots{worker="w1"}'] == 1
    assert rig.wait(rig.hand_in()).verdict is Verdict.ACCEPTED
    wait_until(lambda: figures().get(judged, 0) == before.get(judged, 0) + 1, "it is counted")
    after = figures()
    runs = 'grader_worker_phase_seconds_count{phase="run",worker="w1"}'
    assert after[runs] == before.get(runs, 0) + 1
    assert after['grader_worker_healthy{worker="w1"}'] == 1
    # The page of the queue shows of its host what Prometheus is told.
    (worker,) = queue_state(rig.store).workers
    assert worker.host is not None
    assert worker.host.num_gpus == after['grader_worker_gpus{worker="w1"}'] == 0
    assert (worker.host.num_waiting, worker.host.num_containers) == (0, None)


def test_one_name_is_one_worker(rig: Rig) -> None:
    rig.worker_processes()
    second = rig.start("again", "worker", "--name", "w1", "--no-gpus")
    assert second.wait(60) == 2
    assert "runs here already" in (rig.folder / "again.log").read_text()


def test_logs_are_json_with_the_attempts_id(rig: Rig) -> None:
    attempt_id = rig.hand_in()
    rig.wait(attempt_id)

    def told() -> bool:
        lines = [json.loads(line) for line in (rig.folder / "w1.log").read_text().splitlines()]
        about = {line["event"] for line in lines if line.get("attempt") == attempt_id}
        return about >= {"claimed", "ended"}

    wait_until(told, "its log")
