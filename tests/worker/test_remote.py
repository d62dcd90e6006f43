"""Workers that reach nothing but the service: what they judge is kept as if they stood beside the database."""

from __future__ import annotations

import json

import psutil

from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings, attempts
from grader.store.files import open_files
from grader.store.grading import grades
from grader.store.queue.queue import drain_worker, queue_state
from grader.store.queue.worker_tokens import revoke_worker_token
from grader.store.tables import GradeCodeRow
from grader.store.tables.attempt import AttemptState
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, Rig, wait_until


def test_what_a_remote_worker_judges_is_kept_cancelled_and_given_back(site: Site) -> None:
    rig = site(remote=True)
    rig.worker("w1", "--grace", "1")
    good, flawed = rig.hand_in(), rig.hand_in(rig.toy("rejected/never_wrapped"))
    assert rig.wait(good, AttemptState.JUDGED).verdict is Verdict.ACCEPTED
    assert rig.wait(flawed, AttemptState.JUDGED).verdict is Verdict.REJECTED
    kinds = [one.kind for one in rig.events(flawed)]
    assert (kinds[:2], kinds[-1]) == (["queued", "claimed"], "judged")
    assert [one.data["phase"] for one in rig.events(flawed, "phase")] == [
        "prepare",
        "run",
        "evaluate",
        "report",
    ]
    assert rig.facts(flawed).worker == "cluster/w1"
    _assert_kept(rig, flawed)

    # It is shown, with its host.
    (worker,) = queue_state(rig.store).workers
    assert (worker.name, worker.needs) == ("cluster/w1", ("cpu",))
    assert worker.host is not None

    # A learner's cancel reaches it.
    running = rig.hand_in(rig.script(SLOW))
    pid = rig.wait_running(running)
    attempt_endings.cancel(rig.store, running, actor_id=rig.anna)
    rig.wait(running, AttemptState.CANCELLED)
    assert not psutil.pid_exists(pid)

    # SIGTERM gives back what takes too long, and costs no try.
    running = rig.hand_in(rig.script(SLOW))
    rig.wait_running(running)
    assert rig.end("w1") == 0
    facts = rig.facts(running)
    assert (facts.state, facts.tries) == (AttemptState.QUEUED, 0)
    assert queue_state(rig.store).workers == ()


def _assert_kept(rig: Rig, attempt_id: int) -> None:
    """Every file is the one that was made, and the grade is the file's, its codes among it."""
    kept = {one.name: one for one in attempts.files_of(rig.store, attempt_id)}
    assert set(kept) == {
        "report.html",
        "report-staff.html",
        "grade.json",
        "grade-learner.json",
        "evidence.tar.gz",
    }
    files = open_files(rig.store, "", rig.folder / "state" / "files")
    for one in kept.values():
        assert len(files.get(one.digest)) == one.size
    grade = grades.grade_of(rig.store, attempt_id)
    assert grade is not None
    assert grade.document == files.get(kept["grade.json"].digest).decode()
    told = {one["code"] for one in json.loads(grade.document)["findings"] if not one["refuted"]}
    with rig.store.read() as connection:
        rows = connection.execute(GradeCodeRow.__table__.select()).mappings()
        assert {row["code"] for row in rows if row["attempt_id"] == attempt_id} == told


def test_drained_and_shut_out(site: Site) -> None:
    rig = site(remote=True)
    rig.worker()
    wait_until(lambda: queue_state(rig.store).workers, "it is there")
    assert drain_worker(rig.store, "cluster/w1", actor_id=None)
    assert rig.processes.pop("w1").wait(60) == 0
    assert revoke_worker_token(rig.store, "cluster")
    assert rig.worker("w2").wait(60) == 2
    assert "does not work" in (rig.folder / "w2.log").read_text()
