"""A course from draft to archive and beyond: what each state lets whom do, in every way that leads to the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store import events
from grader.store.attempts import retention
from grader.store.attempts.limits import LateBank, Limit, Refusal
from grader.store.attempts.retention import RetentionRule
from grader.store.attempts.submissions import Receipt
from grader.store.courses import (
    announcements,
    class_list,
    course_copies,
    course_deletion,
    course_life,
    course_time_zone,
    courses,
    enrolments,
    late_days,
    task_drafts,
    task_order,
    task_withdrawal,
)
from grader.store.courses.archived_courses import CourseArchivedError
from grader.store.courses.course_copies import CoursePlan
from grader.store.courses.courses import TaskTerms
from grader.store.courses.extensions import Extension, extend
from grader.store.courses.grading_rules import (
    GradingRules,
    TaskGrading,
    grading_rules,
    set_grading_rules,
    set_task_grading,
    task_gradings,
)
from grader.store.files import FolderFiles
from grader.store.grading import certificates, grades, regrades, reviews
from grader.store.grading.comment_library import LibraryComment, add_entry, entries_of, retire_entry
from grader.store.grading.comment_points import CommentPoints
from grader.store.grading.progress import progress
from grader.store.grading.pseudonyms import anonymous_tasks
from grader.store.people import invitations, own_courses
from grader.store.people.people import account_by_login
from grader.store.tables.person import Role
from tests.store.campus import Campus


def test_a_draft_is_there_for_its_staff_alone(campus: Campus) -> None:
    draft = courses.add_course(campus.store, "next", "Next term", draft=True)
    enrolments.enrol(campus.store, draft, campus.anna)
    enrolments.enrol(campus.store, draft, campus.ines, Role.INSTRUCTOR)
    task = courses.set_task(campus.store, draft, "ddp-toy", "cpu", TaskTerms("Toy", "a" * 64))

    def seen(person_id: int) -> set[int]:
        return {one.course_id for one in own_courses.courses_of(campus.store, person_id)}

    assert seen(campus.anna) == {campus.course}
    assert seen(campus.ines) == {campus.course, draft}
    refused = campus.hand_in(campus.anna, task=task)
    assert isinstance(refused, Refusal)
    assert refused.limit is Limit.NOT_ENROLLED
    assert isinstance(campus.hand_in(campus.ines, task=task), Receipt)
    assert course_life.publish_course(campus.store, draft, actor_id=campus.ines)
    assert not course_life.publish_course(campus.store, draft, actor_id=campus.ines)
    assert seen(campus.anna) == {campus.course, draft}
    assert isinstance(campus.hand_in(campus.anna, task=task), Receipt)


def test_an_archived_course_is_read_and_never_changed(campus: Campus) -> None:
    attempt, store, course, task = campus.judge(campus.anna), campus.store, campus.course, campus.task
    waiting, by = campus.queue(campus.ben), campus.ines
    assert course_life.archive_course(store, course, actor_id=by)
    changes: tuple[Callable[[], object], ...] = (
        lambda: course_life.set_words(store, course, "Other", None, actor_id=by),
        lambda: course_life.rename(store, course, "other", actor_id=by),
        lambda: course_life.set_closed(store, course, True, actor_id=by),
        lambda: course_time_zone.set_time_zone(store, course, "Europe/Paris", actor_id=by),
        lambda: campus.set_task(weight=3.0),
        lambda: campus.set_task("another"),
        lambda: task_order.reorder(store, course, (campus_draft, task), actor_id=by),
        lambda: task_withdrawal.withdraw_task(store, course, task, actor_id=by),
        lambda: extend(store, task, Extension(datetime.now(UTC)), actor_id=by),
        lambda: late_days.set_late_bank(store, course, LateBank(3), actor_id=by),
        lambda: enrolments.enrol(store, course, campus.anna, Role.INSTRUCTOR, actor_id=by),
        lambda: class_list.take_over(
            store, course, [class_list.ListedAccount("zoe", "Zoe", "p" * 20)], actor_id=by
        ),
        lambda: invitations.invite(store, course, lifetime_s=3600, actor_id=by),
        lambda: reviews.override(store, attempt, Verdict.REJECTED, 1.0, "no", actor_id=by),
        lambda: reviews.comment(store, attempt, "no", author_id=by),
        lambda: regrades.queue_new_runs(store, [attempt], actor_id=by),
        lambda: task_drafts.publish_task(store, course, campus_draft, actor_id=by),
    )
    course_life.restore_course(store, course, actor_id=by)
    campus_draft = courses.set_task(store, course, "later", "cpu", TaskTerms("Later", "b" * 64), draft=True)
    course_life.archive_course(store, course, actor_id=by)
    for change in changes:
        with pytest.raises(CourseArchivedError, match="archived"):
            change()
    for person in (campus.anna, campus.ines):
        refused = campus.hand_in(person)
        assert isinstance(refused, Refusal)
        assert refused.limit is Limit.COURSE_ARCHIVED
    assert progress(store, course, campus.anna)[0].refusal == Refusal(Limit.COURSE_ARCHIVED)
    assert account_by_login(store, "zoe") is None
    # What waits is judged to its end, and who has earned a certificate still gets it.
    claimed = campus.claim()
    assert claimed.attempt_id == waiting
    assert isinstance(certificates.issue(store, course, campus.anna), certificates.CertificateFacts)
    assert grades.grade_of(store, attempt) is not None
    assert course_life.restore_course(store, course, actor_id=by)
    assert isinstance(campus.hand_in(campus.anna), Receipt)


def test_a_deleted_course_is_gone_with_its_files_and_its_certificates_still_verify(
    campus: Campus, tmp_path: Path
) -> None:
    files = FolderFiles(tmp_path)
    attempt = campus.judge(campus.anna, "print('only here')\n")
    issued = certificates.issue(campus.store, campus.course, campus.anna)
    assert isinstance(issued, certificates.CertificateFacts)
    with pytest.raises(UsageError, match="archive it first"):
        course_deletion.delete_course(campus.store, files, campus.course, actor_id=campus.ines)
    course_life.archive_course(campus.store, campus.course, actor_id=campus.ines)
    told = course_deletion.course_contents(campus.store, campus.course)
    assert (told.num_people, told.num_tasks, told.num_attempts, told.num_certificates) == (3, 1, 1, 1)
    assert course_deletion.delete_course(campus.store, files, campus.course, actor_id=campus.ines) == told
    assert courses.course(campus.store, campus.course) is None
    assert courses.courses(campus.store) == ()
    assert own_courses.courses_of(campus.store, campus.anna) == ()
    assert grades.grade_of(campus.store, attempt) is None
    verified = certificates.verify(campus.store, issued.public_id)
    assert verified is not None
    assert (verified.course, verified.person, verified.revoked_at) == ("Distributed training", "Anna", None)
    # Its name is free, and a new course inherits nothing of it.
    again = courses.add_course(campus.store, "ddp", "Distributed training")
    assert again != campus.course
    assert events.audit_of(campus.store, f"course:{campus.course}", kind="course_deleted")
    with pytest.raises(UsageError):
        course_deletion.delete_course(campus.store, files, campus.course, actor_id=campus.ines)


def test_a_copy_has_the_terms_at_dates_of_the_new_term(campus: Campus) -> None:
    store, berlin = campus.store, ZoneInfo("Europe/Berlin")
    course_time_zone.set_time_zone(store, campus.course, "Europe/Berlin", actor_id=None)
    late_days.set_late_bank(store, campus.course, LateBank(5, 2), actor_id=None)
    # A Tuesday and a Friday in summer, at 18:00 on the wall.
    opens, due = datetime(2026, 9, 1, 18, tzinfo=berlin), datetime(2026, 9, 11, 18, tzinfo=berlin)
    campus.set_task(opens_at=opens, due_at=due, weight=7.0, max_total=4, grace_minutes=15)
    gone = campus.set_task("gone")
    campus.judge(campus.anna, task=gone)
    task_withdrawal.withdraw_task(store, campus.course, gone, actor_id=None)
    facts = courses.course(store, campus.course)
    assert facts is not None
    tasks = courses.tasks_of(store, campus.course)
    exact = course_copies.shift_to(tasks, berlin, date(2027, 1, 14), keep_weekdays=False)
    assert exact.of(opens) == datetime(2027, 1, 14, 17, tzinfo=UTC), (
        "18:00 on the wall is 17:00 UTC in winter"
    )
    shift = course_copies.shift_to(tasks, berlin, date(2027, 1, 14), keep_weekdays=True)
    plan = CoursePlan("ddp-spring", "Spring", None, shift, [campus.ines])
    made = course_copies.copy_course(store, facts, plan, actor_id=campus.ines)
    copy = courses.course(store, made)
    assert copy is not None
    assert (copy.draft, copy.late_bank, copy.zone) == (True, LateBank(5, 2), berlin)
    assert copy.file_name == "ddp"
    (task,) = courses.tasks_of(store, made)
    assert task.terms.opens_at == datetime(2027, 1, 12, 18, tzinfo=berlin), "the Tuesday of that week"
    assert task.terms.due_at == datetime(2027, 1, 22, 18, tzinfo=berlin)
    assert (task.terms.weight, task.terms.max_total, task.terms.grace_minutes) == (7.0, 4, 15)
    assert [one.login for one in enrolments.participants(store, made)] == ["ines"]
    with pytest.raises(UsageError, match="ddp-spring"):
        course_copies.copy_course(store, facts, plan, actor_id=campus.ines)


def test_a_copy_is_graded_as_the_course_was_and_tells_nobody_of_it(campus: Campus) -> None:
    store, by = campus.store, campus.ines
    second = campus.set_task("another")
    set_grading_rules(store, campus.course, GradingRules(True, 7, True, 3), actor_id=by)
    set_task_grading(store, campus.course, second, TaskGrading(alone=True, leaderboard="points"), actor_id=by)
    kept, gone = (
        add_entry(store, campus.course, LibraryComment(name, "text", CommentPoints(-2.0)), actor_id=by)
        for name in ("kept", "gone")
    )
    retire_entry(store, campus.course, gone, actor_id=by)
    retention.set_rule(store, campus.course, RetentionRule(30, 90), actor_id=by)
    announcements.announce(store, campus.course, "News", "text", author_id=by)
    facts = courses.course(store, campus.course)
    assert facts is not None
    plan = CoursePlan("again", "Again", None, course_copies.DateShift(0, UTC), [by])
    made = course_copies.copy_course(store, facts, plan, actor_id=by)
    assert grading_rules(store, made) == GradingRules(True, 7, True, 3)
    copied = {one.task: one.id for one in courses.tasks_of(store, made)}
    assert task_gradings(store, made) == {copied["another"]: TaskGrading(alone=True, leaderboard="points")}
    (entry,) = entries_of(store, made)
    assert entry.comment == LibraryComment("kept", "text", CommentPoints(-2.0))
    assert entry.id != kept
    assert retention.rule_of(store, made) == RetentionRule(30, 90)
    assert announcements.announcements_of(store, made) == ()
    keys = [set(anonymous_tasks(store, one).values()) for one in (campus.course, made)]
    assert not keys[0] & keys[1], "pseudonyms of both courses would be the same"


def test_a_renamed_course_remembers_its_file(campus: Campus) -> None:
    courses.add_course(campus.store, "taken", "Another")
    for wrong in ("taken", "Not a name", ""):
        with pytest.raises(UsageError):
            course_life.rename(campus.store, campus.course, wrong, actor_id=None)
    for name in ("first", "second"):
        course_life.rename(campus.store, campus.course, name, actor_id=None)
    facts = courses.course(campus.store, campus.course)
    assert facts is not None
    assert (facts.name, facts.file_name) == ("second", "ddp")
    assert timedelta(0) == facts.zone.utcoffset(None)
