"""Several workers, learners and reconcilers at once, as threads and as processes: what must happen once does."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from sqlalchemy import delete, func, select

from grader.store.attempts import attempt_endings, attempts
from grader.store.attempts.attempt_endings import AttemptEnding, CancelResult
from grader.store.attempts.limits import Limit, Refusal
from grader.store.database import Store
from grader.store.grading import grades
from grader.store.queue import claims, reconciler
from grader.store.tables import AttemptRow, CourseTaskRow, EventRow, GradeRow
from grader.store.tables.attempt import FINAL, AttemptState
from tests.store.campus import Campus, verdict_of
from tests.store.conftest import Databases

WORKER = """
import sys
from grader.store.queue import claims
from grader.store.database import Store

store = Store(sys.argv[1])
sys.stdin.readline()
while isinstance(claimed := claims.claim(store, sys.argv[2], ["cpu"]), claims.Claimed):
    print(claimed.attempt_id, claimed.lease_token, flush=True)
"""


def together(*calls: Callable[[], object]) -> list[object]:
    """Start all calls at the same moment, each in a thread of its own, and give back what they return."""
    barrier = threading.Barrier(len(calls))

    def start(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(start, call) for call in calls]]


def test_threads_claim_each_attempt_once(campus: Campus) -> None:
    people = [campus.person(f"p{number}") for number in range(5)]
    queued = {campus.queue(person) for person in people for _ in range(10)}

    def claim_all(worker: str) -> list[int]:
        got = []
        while isinstance(claimed := claims.claim(campus.store, worker, ["cpu"]), claims.Claimed):
            got.append(claimed.attempt_id)
        return got

    got = together(*(lambda worker=worker: claim_all(f"w{worker}") for worker in range(6)))
    everything = [attempt_id for one in got for attempt_id in one]  # type: ignore[attr-defined]
    assert len(everything) == 50
    assert set(everything) == queued


def test_turns_go_round_among_workers_that_claim_at_once(campus: Campus) -> None:
    for _ in range(15):
        campus.queue(campus.anna)
    for _ in range(15):
        campus.queue(campus.ben)

    def claim_some(worker: str) -> None:
        for _ in range(5):
            claims.claim(campus.store, worker, ["cpu"])

    together(*(partial(claim_some, f"w{number}") for number in range(6)))
    order = (
        select(AttemptRow.person_id)
        .join(EventRow, EventRow.attempt_id == AttemptRow.id)
        .where(EventRow.kind == "claimed")
        .order_by(EventRow.id)
    )
    with campus.store.read() as connection:
        served = list(connection.execute(order).scalars())
    assert served == [campus.anna, campus.ben] * 15


def test_processes_claim_each_attempt_once(campus: Campus, repository: Path) -> None:
    queued = {campus.queue(campus.anna if number % 2 else campus.ben) for number in range(30)}
    url = campus.store.url.render_as_string(hide_password=False)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, url, f"w{number}"],
            cwd=repository,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    lines = [line for worker in workers for line in worker.communicate(timeout=120)[0].splitlines()]
    assert all(worker.returncode == 0 for worker in workers)
    assert sorted(int(line.split()[0]) for line in lines) == sorted(queued)


def test_finish_cancel_and_expiry_leave_one_end(campus: Campus) -> None:
    """Twenty rounds: whatever comes first, there is one final state, and a grade exactly where it is `judged`."""
    seen: Counter[AttemptState] = Counter()
    for _ in range(20):
        attempt_id = campus.queue(campus.anna)
        token = campus.claim(lease_s=-1.0).lease_token
        finished, cancelled, _ = together(
            partial(attempt_endings.finish, campus.store, attempt_id, token, verdict_of()),
            partial(attempt_endings.cancel, campus.store, attempt_id, actor_id=campus.anna),
            partial(reconciler.reconcile, campus.store, backoff_s=0),
        )
        facts = attempts.attempt(campus.store, attempt_id)
        assert facts is not None
        judged = grades.grade_of(campus.store, attempt_id) is not None
        assert judged == (facts.state is AttemptState.JUDGED) == (finished is AttemptEnding.JUDGED)
        assert (cancelled is CancelResult.TOO_LATE) == judged
        assert facts.state in FINAL, "a cancel that was taken leaves nothing to run"
        seen[facts.state] += 1
    assert seen.total() == 20


def test_two_grades_at_once_are_one(campus: Campus) -> None:
    for _ in range(5):
        attempt_id = campus.queue(campus.anna)
        token = campus.claim().lease_token
        answers = together(
            *(
                partial(attempt_endings.finish, campus.store, attempt_id, token, verdict_of(points=points))
                for points in (10.0, 20.0, 30.0)
            )
        )
        assert set(answers) == {AttemptEnding.JUDGED}
    with campus.store.read() as connection:
        assert connection.execute(select(func.count()).select_from(GradeRow)).scalar_one() == 5


def test_reconcilers_take_each_lost_attempt_back_once(campus: Campus) -> None:
    for _ in range(20):
        campus.queue(campus.anna)
        campus.claim(lease_s=-1.0)
    done = together(*(lambda: reconciler.reconcile(campus.store, backoff_s=0) for _ in range(4)))
    assert sum(one.requeued for one in done if isinstance(one, reconciler.Reconciled)) == 20
    with campus.store.read() as connection:
        tries = connection.execute(select(AttemptRow.tries, AttemptRow.state)).all()
    assert set(tries) == {(1, AttemptState.QUEUED)}


def test_who_hands_in_while_their_task_is_removed_is_told_that_there_is_none(campus: Campus) -> None:
    with ThreadPoolExecutor(1) as learner:
        with campus.store.write() as connection:
            connection.execute(delete(CourseTaskRow).where(CourseTaskRow.id == campus.task))
            answer = learner.submit(campus.hand_in, campus.anna)
            # Time to read terms that are still there for everybody else.
            time.sleep(0.5)
            assert not answer.done()
        assert answer.result(10) == Refusal(Limit.NOT_ENROLLED)


def test_grades_of_one_learner_at_once_all_count(campus: Campus) -> None:
    """Each finish works out the standing anew; none may overlook another's grade."""
    from grader.model.grade import Verdict
    from grader.store.grading.gradebook import gradebook

    leases = []
    for _ in range(8):
        campus.queue(campus.anna)
        claimed = campus.claim()
        leases.append(claimed)
    points = [10.0, 80.0, 30.0, 40.0, 20.0, 60.0, 50.0, 70.0]
    random.Random(0).shuffle(leases)
    together(
        *(
            lambda lease=lease, earned=earned: attempt_endings.finish(
                campus.store, lease.attempt_id, lease.lease_token, verdict_of(Verdict.REJECTED, earned)
            )
            for lease, earned in zip(leases, points, strict=True)
        )
    )
    (cell,) = [row.cells[campus.task] for row in gradebook(campus.store, campus.course).rows if row.cells]
    assert (cell.points, cell.num_attempts) == (80.0, 8)


def test_migrations_at_once_are_one(databases: Databases) -> None:
    from grader.store import schema

    url = databases.url(empty=True)
    stores = [databases.open(url) for _ in range(3)]
    together(*(lambda store=store: schema.upgrade(store) for store in stores))
    assert all(schema.status(store).up_to_date for store in stores)


def test_a_new_database_may_be_opened_by_many_at_once(databases: Databases) -> None:
    def look(store: Store) -> bool:
        with store.read() as connection:
            return bool(connection.execute(select(1)).scalar_one() == 1)

    for _ in range(20 if databases.server is None else 1):
        url = databases.url(empty=True)
        assert all(together(*(partial(look, databases.open(url)) for _ in range(8))))
