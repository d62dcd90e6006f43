"""Row 48: a job that kills its worker every time, and a task that fails whoever tries it."""

from __future__ import annotations

import os
import shutil
import signal
from functools import partial

from grader.store.attempts.limits import Refusal
from grader.store.grading import grades
from grader.store.tables.attempt import AttemptState
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, Rig, wait_until


def _kill_whoever_tries(rig: Rig, attempt_id: int) -> None:
    def runs(tries: int) -> bool:
        facts = rig.facts(attempt_id)
        return facts.state is AttemptState.RUNNING and facts.tries == tries

    for tries in (1, 2, 3):
        wait_until(partial(runs, tries), f"try {tries}")
        for process in rig.worker_processes():
            os.kill(process.pid, signal.SIGKILL)


def test_what_kills_its_worker_three_times_ends_as_judge_error(site: Site) -> None:
    rig = site()
    rig.relay()
    rig.worker()
    poison = rig.hand_in(rig.script(SLOW))
    _kill_whoever_tries(rig, poison)
    facts = rig.wait(poison, AttemptState.FAILED)
    assert facts.tries == 3
    assert grades.grade_of(rig.store, poison) is None
    # Staff are told, the learner is not charged, and the next attempt is judged.
    wait_until(lambda: "judge_error" in (rig.folder / "relay.log").read_text(), "staff are told")
    assert not isinstance(rig.hand_in(), Refusal)
    rig.wait(rig.hand_in(), AttemptState.JUDGED)


def test_a_task_that_its_author_has_to_mend_is_not_tried_again(site: Site) -> None:
    """The scorer of the task fails: no learner's fault, and no better a second time."""
    rig = site()
    tasks = rig.folder / "tasks"
    shutil.copytree(rig.task.folder, tasks / "ddp-toy")
    (tasks / "ddp-toy" / "evaluate.py").write_text(
        "def build_model():\n    raise RuntimeError('half done')\n"
    )
    from grader.catalog.tasks.task_loading import load_task_folder
    from grader.store.courses.courses import TaskTerms, set_task

    broken = load_task_folder(tasks / "ddp-toy", rig.task.skeleton)
    set_task(rig.store, rig.course, "ddp-toy", "cpu", TaskTerms(title="Toy", version=broken.version))
    rig.relay()
    rig.worker("w1", GRADER_TASKS_DIR=str(tasks))
    facts = rig.wait(rig.hand_in(), AttemptState.FAILED)
    assert facts.tries == 1
    assert "half done" in str(facts.failure)
