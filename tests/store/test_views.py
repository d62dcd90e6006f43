"""What pages show: gradebook, attempts, class view, who is stuck, regrades, overrides, certificates.

A full course (500 learners, 9 tasks, 5 attempts each) is read with few statements and by indexes; no clock is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses, task_order
from grader.store.courses.extensions import Extension, extend
from grader.store.database import Store
from grader.store.events import audit_of
from grader.store.grading import certificates, class_statistics, gradebook, held_attempts, regrades, reviews
from grader.store.tables.attempt import AttemptState, Lane
from tests.store.campus import Campus, verdict_of
from tests.store.conftest import Databases
from tests.store.full_course import LEARNERS, TASKS, TRIES, full_course


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, object]]]:
    """Every statement of the block with its parameters, without BEGIN and its like."""
    seen: list[tuple[str, object]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            seen.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)


def scans(store: Store, seen: list[tuple[str, object]], table: str) -> list[str]:
    """Statements that read a table from its beginning to its end instead of through an index."""
    found = []
    with store.engine.connect() as connection:
        for statement, parameters in seen:
            if store.is_sqlite:
                plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters)  # type: ignore[arg-type]
                steps = [row[3] for row in plan]
                # A walk along the ids that stops at the page's end reads no more than the page.
                whole = " LIMIT " not in statement or any("TEMP B-TREE FOR ORDER" in s for s in steps)
                bad = [s for s in steps if s.startswith(f"SCAN {table}") and "INDEX" not in s and whole]
            else:
                plan = connection.exec_driver_sql("EXPLAIN " + statement, parameters)  # type: ignore[arg-type]
                steps = [row[0] for row in plan]
                bad = [s for s in steps if f"Seq Scan on {table}" in s]
            found += [f"{step}: {statement}" for step in bad]
    return found


@pytest.fixture(scope="module")
def full(databases: Databases) -> Iterator[tuple[Store, int]]:
    """A full course and its id."""
    store = databases.open()
    yield store, full_course(store).course
    store.close()


def test_a_full_gradebook_takes_six_statements(full: tuple[Store, int]) -> None:
    store, course = full
    with statements(store) as seen:
        book = gradebook.gradebook(store, course)
    assert len(seen) == 6
    assert (len(book.tasks), len(book.rows)) == (TASKS + 1, LEARNERS + 2)
    learners = [row for row in book.rows if row.person_id >= 1000]
    assert all(len(row.cells) == TASKS for row in learners)
    assert {cell.num_attempts for row in learners for cell in row.cells.values()} == {TRIES}
    assert {cell.points for row in learners for cell in row.cells.values()} == {80.0}
    # A planner that needs a good part of a table may rightly read all of it; ours reads along an index.
    assert not store.is_sqlite or scans(store, seen, "grades") == []


def test_pages_of_attempts_take_one_statement_through_an_index(full: tuple[Store, int]) -> None:
    store, course = full
    task = courses.tasks_of(store, course)[1].id
    filters = [
        AttemptFilter(),
        AttemptFilter(course_id=course),
        AttemptFilter(person_id=1007),
        AttemptFilter(course_task_id=task, person_id=1007),
        AttemptFilter(course_task_id=task, verdict=Verdict.ACCEPTED),
        AttemptFilter(course_task_id=task, code="DATA001"),
        AttemptFilter(state=AttemptState.JUDGED, lane=Lane.INTERACTIVE),
    ]
    for wanted in filters:
        with statements(store) as seen:
            first = attempts(store, wanted, limit=20)
            second = attempts(store, wanted, before=first[-1].id, limit=20)
        assert len(seen) == 2
        ids = [one.id for one in (*first, *second)]
        assert ids == sorted(set(ids), reverse=True), "pages follow each other"
        assert len(first) == (5 if wanted.course_task_id and wanted.person_id else 20)
        assert scans(store, seen, "attempts") == []
    own = attempts(store, AttemptFilter(course_task_id=task, person_id=1007))
    assert [one.points for one in own] == [80.0, 60.0, 40.0, 20.0, 0.0]
    assert {one.login for one in own} == {"l7"}


def test_the_review_queue_is_counted_by_an_index(full: tuple[Store, int]) -> None:
    """Every page of an instructor says how many wait; it does not look at all grades for that."""
    store, course = full
    with statements(store) as seen:
        assert held_attempts.num_held(store, course) == 0
        assert held_attempts.held_attempts(store, course) == ()
    assert len(seen) == 2
    assert scans(store, seen, "grades") == []
    assert scans(store, seen, "attempts") == []


def test_class_view_and_stuck_take_few_statements(full: tuple[Store, int]) -> None:
    store, course = full
    task = courses.tasks_of(store, course)[1].id
    with statements(store) as seen:
        counts = class_statistics.code_counts(store, task)
        stuck = class_statistics.stuck_learners(store, course, min_attempts=TRIES)
    assert len(seen) == 3
    assert [one.num_now for one in counts] == [0] * 9, "the last attempts have none of them"
    assert sum(one.num_attempts for one in counts) == LEARNERS * (4 + 3 + 2 + 1)
    assert len(stuck) == LEARNERS // 2 * TASKS
    assert scans(store, seen[:1], "grade_codes") == []


def test_claiming_from_a_full_store_reads_only_what_waits(full: tuple[Store, int]) -> None:
    from grader.store.queue import claims, queue, reconciler

    store, _ = full
    with statements(store) as seen:
        assert claims.claim(store, "w", ["cpu"]) is claims.Idle.EMPTY
        reconciler.reconcile(store)
        assert queue.places(store) == {}
        assert queue.queue_state(store).running == 0
    assert scans(store, seen, "attempts") == []


def test_class_view_counts_who_has_it_now(campus: Campus) -> None:
    campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 10.0, ("DATA002", "GRAD001")))
    campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 20.0, ("GRAD001",)))
    campus.judge(campus.ben, grade=verdict_of(Verdict.REJECTED, 20.0, ("GRAD001",)))
    campus.judge(campus.ines, grade=verdict_of(Verdict.REJECTED, 20.0, ("GRAD001",)))
    assert class_statistics.code_counts(campus.store, campus.task) == (
        class_statistics.CodeCount("GRAD001", num_attempts=3, num_learners=2, num_now=2),
        class_statistics.CodeCount("DATA002", num_attempts=1, num_learners=1, num_now=0),
    )
    (one,) = class_statistics.stuck_learners(campus.store, campus.course, min_attempts=2)
    assert (one.login, one.num_attempts, one.codes) == ("anna", 2, ("GRAD001",))
    campus.judge(campus.anna)
    assert class_statistics.stuck_learners(campus.store, campus.course, min_attempts=2) == ()


def cell(campus: Campus, person: int) -> gradebook.GradebookCell:
    rows = {row.person_id: row.cells for row in gradebook.gradebook(campus.store, campus.course).rows}
    return rows[person][campus.task]


def test_the_best_attempt_counts_and_an_override_beats_it(campus: Campus) -> None:
    first = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 90.0))
    campus.judge(campus.anna, grade=verdict_of(Verdict.ACCEPTED, 80.0))
    assert (cell(campus, campus.anna).verdict, cell(campus, campus.anna).points) == (Verdict.ACCEPTED, 80.0)
    reviews.override(campus.store, first, Verdict.ACCEPTED, 95.0, "fair", actor_id=campus.ines)
    changed = cell(campus, campus.anna)
    assert changed.result is not None
    assert (changed.attempt_id, changed.points, changed.result.decided) == (first, 95.0, True)
    (shown,) = reviews.overrides_of(campus.store, first)
    assert (shown.actor, shown.reason) == ("Ines", "fair")
    (facts,) = [one for one in attempts(campus.store, AttemptFilter()) if one.id == first]
    assert (facts.verdict, facts.points) == (Verdict.REJECTED, 90.0), "the original is kept"
    assert reviews.withdraw_override(campus.store, first, actor_id=campus.ines)
    assert not reviews.withdraw_override(campus.store, first, actor_id=campus.ines)
    assert cell(campus, campus.anna).points == 80.0
    for points, reason in ((101.0, "x"), (-1.0, "x"), (50.0, " ")):
        with pytest.raises(UsageError):
            reviews.override(campus.store, first, Verdict.ACCEPTED, points, reason, actor_id=campus.ines)
    waiting = campus.queue(campus.ben)
    with pytest.raises(UsageError, match="no grade"):
        reviews.override(campus.store, waiting, Verdict.ACCEPTED, 5.0, "x", actor_id=campus.ines)


@pytest.mark.one_database
def test_comments_stand_at_their_lines(campus: Campus) -> None:
    attempt_id = campus.judge(campus.anna)
    reviews.comment(campus.store, attempt_id, "see\0here", author_id=campus.ines, path="train.py", line=7)
    (shown,) = reviews.comments_of(campus.store, attempt_id)
    assert (shown.author, shown.path, shown.line, shown.text) == ("Ines", "train.py", 7, "see␀here")
    with pytest.raises(UsageError):
        reviews.comment(campus.store, attempt_id, "\n", author_id=campus.ines)


def test_a_regrade_is_shown_before_it_counts(campus: Campus) -> None:
    old = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0))
    same = campus.judge(campus.ben, grade=verdict_of(Verdict.REJECTED, 50.0))
    campus.set_task(version="b" * 64)
    batch = regrades.queue_new_runs(campus.store, [old, same, 4711], actor_id=campus.ines)
    for points in (70.0, 50.0):
        claimed = campus.claim()
        assert (claimed.task_version, claimed.lane) == ("b" * 64, Lane.REGRADE)
        attempt_endings.finish(
            campus.store, claimed.attempt_id, claimed.lease_token, verdict_of(Verdict.REJECTED, points)
        )
    changes = regrades.preview(campus.store, batch)
    assert [(one.attempt_id, one.before, one.after, one.changes) for one in changes] == [
        (old, (Verdict.REJECTED, 40.0), (Verdict.REJECTED, 70.0), True),
        (same, (Verdict.REJECTED, 50.0), (Verdict.REJECTED, 50.0), False),
    ]
    assert cell(campus, campus.anna).points == 40.0
    assert regrades.apply(campus.store, batch, actor_id=campus.ines) == 2
    assert regrades.apply(campus.store, batch, actor_id=campus.ines) == 0
    shown = cell(campus, campus.anna)
    assert (shown.points, shown.num_attempts) == (70.0, 1), "a regrade is nobody's attempt"
    again = regrades.queue_new_runs(campus.store, [changes[0].regrade_id], actor_id=campus.ines)
    claimed = campus.claim()
    attempt_endings.finish(
        campus.store, claimed.attempt_id, claimed.lease_token, verdict_of(Verdict.REJECTED, 30.0)
    )
    (change,) = regrades.preview(campus.store, again)
    assert (change.attempt_id, change.before) == (old, (Verdict.REJECTED, 70.0))
    regrades.apply(campus.store, again, actor_id=campus.ines)
    assert cell(campus, campus.anna).points == 30.0, "the newest judgement holds, a worse one, too"
    with pytest.raises(UsageError, match="none of these"):
        regrades.queue_new_runs(campus.store, [4711], actor_id=campus.ines)


def test_a_certificate_needs_every_required_task(campus: Campus) -> None:
    second = campus.set_task("ddp-second")
    campus.set_task("ddp-extra", required=False)
    assert certificates.issue(campus.store, campus.course, campus.anna) == certificates.MissingTasks(
        ("ddp-toy", "ddp-second")
    )
    campus.judge(campus.anna)
    assert certificates.issue(campus.store, campus.course, campus.anna) == certificates.MissingTasks(
        ("ddp-second",)
    )
    assert certificates.earned(campus.store, campus.course) == ()
    campus.judge(campus.anna, task=second)
    assert certificates.earned(campus.store, campus.course) == (campus.anna,)
    issued = certificates.issue(campus.store, campus.course, campus.anna)
    assert isinstance(issued, certificates.CertificateFacts)
    assert (issued.person, issued.course) == ("Anna", "Distributed training")
    assert certificates.issue(campus.store, campus.course, campus.anna) == issued
    assert certificates.verify(campus.store, issued.public_id) == issued
    assert certificates.verify(campus.store, "guess") is None


def test_a_certificate_is_revoked_for_a_reason_and_holds_again(campus: Campus) -> None:
    store, course, anna = campus.store, campus.course, campus.anna

    def revoke(person_id: int, reason: str, course_id: int = course) -> bool:
        return certificates.revoke_certificate(store, course_id, person_id, reason, actor_id=campus.ines)

    for person in (anna, campus.ben):
        campus.judge(person)
        certificates.issue(store, course, person)
    issued = certificates.certificate_of(store, course, anna)
    assert issued is not None
    with pytest.raises(UsageError, match="needs a reason"):
        revoke(anna, " ")
    assert certificates.certificate_of(store, course, anna) == issued
    assert not revoke(campus.ines, "she has none")
    assert not revoke(anna, "of another course", 4711)
    assert revoke(anna, "handed in somebody else's script")
    assert not revoke(anna, "twice"), "it is revoked already"
    revoked = certificates.verify(store, issued.public_id)
    assert revoked is not None
    assert revoked.revoked_at is not None
    assert certificates.issue(store, course, anna) == revoked, "nobody gets another one by asking again"
    assert certificates.revocation_reasons(store, course) == {anna: "handed in somebody else's script"}
    assert [one.revoked_at is None for one in certificates.certificates_of(store, course)] == [False, True]
    assert certificates.reinstate_certificate(store, course, anna, actor_id=campus.ines)
    assert not certificates.reinstate_certificate(store, course, anna, actor_id=campus.ines)
    assert certificates.verify(store, issued.public_id) == issued
    assert revoke(anna, "it was theirs after all")
    assert certificates.revocation_reasons(store, course) == {anna: "it was theirs after all"}
    done = [one for one in audit_of(store, f"course:{course}") if one.kind.startswith("certificate_")]
    assert [(one.kind, one.actor_id, one.data["person_id"]) for one in done] == [
        ("certificate_revoked", campus.ines, anna),
        ("certificate_reinstated", campus.ines, anna),
        ("certificate_revoked", campus.ines, anna),
    ]


def test_feedback_is_hidden_until_it_is_due(campus: Campus) -> None:
    from grader.store.clock import now

    with campus.store.read() as connection:
        at = now(connection)
    opens = gradebook.feedback_opens_at
    assert opens(campus.store, campus.task, campus.anna) is None
    campus.set_task(hidden_until_due=True, due_at=at + timedelta(hours=1))
    assert opens(campus.store, campus.task, campus.anna) == at + timedelta(hours=1)
    extend(
        campus.store,
        campus.task,
        Extension(at + timedelta(hours=2)),
        person_ids=[campus.anna],
        actor_id=campus.ines,
    )
    assert opens(campus.store, campus.task, campus.anna) == at + timedelta(hours=2)
    campus.set_task(hidden_until_due=True, due_at=at - timedelta(hours=1))
    assert opens(campus.store, campus.task, campus.ben) is None


def test_tasks_keep_their_order(campus: Campus) -> None:
    second = campus.set_task("second")
    task_order.reorder(campus.store, campus.course, (second, campus.task), actor_id=campus.ines)
    assert [one.task for one in courses.tasks_of(campus.store, campus.course)] == ["second", "ddp-toy"]
    with pytest.raises(UsageError):
        task_order.reorder(campus.store, campus.course, (second,), actor_id=campus.ines)
    with pytest.raises(UsageError, match="already"):
        courses.add_course(campus.store, "ddp", "Twice")
    (found,) = courses.courses(campus.store)
    assert courses.course(campus.store, found.id) == found
    for wrong in ({"late_loss": 2.0}, {"max_total": 0}):
        with pytest.raises(ValueError, match=r"share|limit"):
            campus.set_task(**wrong)
