"""Everything that a class handed in, as files of an archive: `login/task-profile/attempt-02/train.py`, and a manifest.

Read learner by learner and attempt by attempt, each with statements of its own: no transaction stays open for as long
as somebody's download takes, and a class of any size takes the memory of one submission. Tasks that are graded
anonymously come last, in folders of their own by the pseudonyms of their pages, and in their order.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.model.attempt_result import AttemptResult
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, StoredAttempt, attempts
from grader.store.attempts.submissions import source_of
from grader.store.courses.class_register import RegisteredLearner, register_of
from grader.store.courses.courses import AssignedTask
from grader.store.database import Store
from grader.store.grading.gradebook import gradebook
from grader.store.grading.pseudonyms import anonymous_tasks, pseudonym
from grader.store.tables.attempt import Lane
from grader.web.archives.folder_names import own_folder, plain_name
from grader.web.archives.streamed_zip import ArchivedFile
from grader.web.staff.csv_files import Value, to_csv

_MOST = 10_000
"""Attempts of one learner in one task."""
_HEADER = (
    *(
        "folder",
        "login",
        "name",
        "section",
        "external_id",
        "task",
        "profile",
        "attempt",
        "number",
        "handed_in",
    ),
    *("state", "verdict", "points", "of", "days_late", "counts", "files", "digest"),
)


@dataclass(frozen=True, slots=True)
class ArchiveChoice:
    """What is wanted of a course.

    Attributes:
        tasks: of these.
        every: all attempts; otherwise the one that counts, or, where nothing is judged yet, the last.
        secret: learners are called by pseudonyms made with it, the same in every archive of the course; "": by login.
    """

    tasks: Sequence[AssignedTask]
    every: bool = False
    secret: str = ""


def class_archive(store: Store, course_id: int, choice: ArchiveChoice) -> Iterator[ArchivedFile]:
    """The files, learner by learner, by name; last of all `manifest.csv` with a line per attempt.

    Where scripts were deleted by a rule, the manifest says so: the attempt has 0 files.
    """
    counting = {
        (row.person_id, task_id): cell.attempt_id
        for anonymous in (False, True)
        for row in gradebook(store, course_id, anonymous=anonymous).rows
        for task_id, cell in row.cells.items()
    }
    lines: list[list[Value]] = []
    taken: set[str] = set()
    for learner, called, tasks in _chapters(store, course_id, choice):
        home = own_folder(called, learner.person_id, taken)
        for task in tasks:
            wanted = _attempts(store, task, learner, counting.get((learner.person_id, task.id)), choice.every)
            results = results_of(store, [effective.id for _, effective, _ in wanted])
            for one, effective, counts in wanted:
                folder = f"{home}/{plain_name(f'{task.task}-{task.profile}')}/attempt-{one.number:02d}"
                source = source_of(store, one.id)
                files = () if source is None else source.files
                for file in files:
                    yield ArchivedFile(
                        f"{folder}/{file.path}", file.text.encode("utf-8", "replace"), one.queued_at
                    )
                who: list[Value] = [called, "", "", ""]
                if called == learner.login:
                    who = [learner.login, learner.name, learner.section, learner.external_id]
                lines.append(
                    [folder, *who, *_facts(one, results.get(effective.id)), counts, len(files), one.digest]
                )
    yield ArchivedFile("manifest.csv", to_csv(_HEADER, lines))


def _chapters(
    store: Store, course_id: int, choice: ArchiveChoice
) -> Iterator[tuple[RegisteredLearner, str, Sequence[AssignedTask]]]:
    """Each learner as they are called, with the tasks of which they are called so."""
    keys = anonymous_tasks(store, course_id)
    learners = register_of(store, course_id)
    named = [one for one in choice.tasks if one.id not in keys]
    for learner in learners if named else ():
        called = _pseudonym(choice.secret, course_id, learner) if choice.secret else learner.login
        yield learner, called, named
    hidden = [one for one in choice.tasks if one.id in keys]
    # Of one course: it has one key.
    for key in {keys[one.id] for one in hidden}:
        called_so = {pseudonym(key, one.person_id): one for one in learners}
        for name in sorted(called_so):
            yield called_so[name], name, hidden


def _attempts(
    store: Store, task: AssignedTask, learner: RegisteredLearner, counting: int | None, every: bool
) -> list[tuple[StoredAttempt, StoredAttempt, str]]:
    """The wanted attempts in their order, each with the regrade that holds instead of it, and whether it counts."""
    wanted = AttemptFilter(course_task_id=task.id, person_id=learner.person_id)
    found = attempts(store, wanted, limit=_MOST)
    holding = {one.regrade_of or one.id: one for one in reversed(found) if one.counts}
    handed_in = [one for one in reversed(found) if one.lane is Lane.INTERACTIVE]
    roots = {one.id: one.regrade_of or one.id for one in found}
    counted = roots.get(counting) if counting is not None else None
    if not every:
        last = handed_in[-1].id if handed_in else None
        handed_in = [one for one in handed_in if one.id == (counted or last)]
    return [(one, holding.get(one.id, one), "yes" if one.id == counted else "") for one in handed_in]


def _facts(one: StoredAttempt, result: AttemptResult | None) -> list[Value]:
    facts: list[Value] = [one.task, one.profile, one.id, one.number]
    facts += [one.queued_at.isoformat(timespec="seconds"), one.state.value]
    if result is None:
        return [*facts, None, None, None, None]
    return [*facts, result.verdict.value, result.points, result.max_points, result.late_days]


def _pseudonym(secret: str, course_id: int, learner: RegisteredLearner) -> str:
    said = f"pseudonym:{course_id}:{learner.person_id}".encode()
    return "learner-" + hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()[:12]
