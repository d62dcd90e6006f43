"""A small course to try the store on: people, a task, and short ways to hand in, to claim and to judge."""

from __future__ import annotations

import itertools
import json
from typing import Any

from grader.model.finding import Severity
from grader.model.grade import SCHEMA, Verdict
from grader.model.submission import SourceFile, Submission
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.limits import Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.database import Store
from grader.store.grading.grades import NewGrade
from grader.store.people import people
from grader.store.queue import claims
from grader.store.tables.person import Role

VERSION = "a" * 64


def script(text: str = "print('hello')\n", name: str = "train") -> Submission:
    return Submission(name, (SourceFile("train.py", text),))


def verdict_of(
    verdict: Verdict = Verdict.ACCEPTED,
    points: float = 100.0,
    codes: tuple[str, ...] = (),
    name: str = "train",
) -> NewGrade:
    document = (
        json.dumps({"schema": SCHEMA, "verdict": verdict, "points": points, "submission": name}, indent=2)
        + "\n"
    )
    return NewGrade(verdict, points, 100.0, document, tuple((code, Severity.ERROR) for code in codes))


class Campus:
    """One course with one task; `anna` and `ben` learn, `ines` teaches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.course = courses.add_course(store, "ddp", "Distributed training")
        self.ines = self.person("ines", Role.INSTRUCTOR)
        self.anna = self.person("anna")
        self.ben = self.person("ben")
        self.task = self.set_task()
        self._texts = itertools.count()

    def person(self, login: str, role: Role = Role.LEARNER) -> int:
        person_id = people.add_person(self.store, login, login.title(), role)
        enrolments.enrol(self.store, self.course, person_id, role)
        return person_id

    def set_task(self, name: str = "ddp-toy", **terms: Any) -> int:
        return courses.set_task(
            self.store, self.course, name, "cpu", TaskTerms(title=name, **{"version": VERSION, **terms})
        )

    def hand_in(
        self, person_id: int, text: str | None = None, *, task: int | None = None, **options: Any
    ) -> Receipt | Refusal:
        """Hand something in; a text of its own unless one is given, so that nothing is answered from before."""
        unique = f"print({next(self._texts)})\n" if text is None else text
        return submissions.submit(self.store, person_id, task or self.task, script(unique), **options)

    def queue(self, person_id: int, text: str | None = None, **options: Any) -> int:
        """Hand something in that must be taken, and return the attempt."""
        answer = self.hand_in(person_id, text, **options)
        assert isinstance(answer, Receipt), answer
        return answer.attempt_id

    def claim(self, worker: str = "w1", needs: tuple[str, ...] = ("cpu",), **options: Any) -> claims.Claimed:
        """Claim something that must be there."""
        claimed = claims.claim(self.store, worker, needs, **options)
        assert isinstance(claimed, claims.Claimed), claimed
        return claimed

    def judge(
        self, person_id: int, text: str | None = None, grade: NewGrade | None = None, **options: Any
    ) -> int:
        """Hand in, claim and judge; returns the attempt."""
        attempt_id = self.queue(person_id, text, **options)
        claimed = self.claim()
        assert claimed.attempt_id == attempt_id, "something else was waiting"
        ending = attempt_endings.finish(self.store, attempt_id, claimed.lease_token, grade or verdict_of())
        assert ending is attempt_endings.AttemptEnding.JUDGED
        return attempt_id
