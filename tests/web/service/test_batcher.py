"""Those who come at the same moment share a transaction, and nothing else: neither answers nor faults."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import event

from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import enrolments
from grader.store.database import StoreUnavailableError
from grader.store.people import people, tokens
from grader.store.tables.api_token import Scope
from grader.web.lookups.batcher import Batcher
from tests.web.conftest import SCRIPT, Served


class Desk:
    """Answers in capitals, as soon as it is let; remembers what it was asked together."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked: list[list[str]] = []
        self.together: Batcher[str, str] = Batcher(self._answer, name="desk", apart=lambda text: text[0])

    def _answer(self, questions: list[str]) -> list[str]:
        self.asked.append(questions)
        assert self.open.wait(20)
        if any("wrong" in one for one in questions):
            raise LookupError(questions[0])
        if any("away" in one for one in questions):
            raise StoreUnavailableError("away")
        return [one.upper() for one in questions]

    async def busy(self) -> asyncio.Task[str]:
        """Somebody is being served."""
        first = asyncio.create_task(self.together.ask("first"))
        while not self.asked:
            await asyncio.sleep(0.001)
        return first


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.open.set()


async def _asking(desk: Desk, *texts: str) -> list[asyncio.Task[str]]:
    """They stand in line in this order."""
    tasks = []
    for text in texts:
        tasks.append(asyncio.create_task(desk.together.ask(text)))
        await asyncio.sleep(0)
    return tasks


def test_who_comes_meanwhile_is_served_together_in_order(desk: Desk) -> None:
    async def day() -> list[str]:
        tasks = [await desk.busy(), *await _asking(desk, "a1", "b1", "a2", "c1", "a3", "b2")]
        desk.open.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(day()) == ["FIRST", "A1", "B1", "A2", "C1", "A3", "B2"]
    assert desk.asked == [["first"], ["a1", "b1", "c1"], ["a2", "b2"], ["a3"]]


def test_one_that_goes_wrong_is_its_own_fault(desk: Desk) -> None:
    async def day() -> list[str | BaseException]:
        tasks = [await desk.busy(), *await _asking(desk, "a1", "b-wrong", "c1")]
        desk.open.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, before, wrong, after = asyncio.run(day())
    assert (first, before, after) == ("FIRST", "A1", "C1")
    assert isinstance(wrong, LookupError)
    assert wrong.args == ("b-wrong",)


def test_a_database_that_is_away_is_waited_for_once(desk: Desk) -> None:
    async def day() -> list[str | BaseException]:
        tasks = [await desk.busy(), *await _asking(desk, "a1", "b-away", "c1")]
        desk.open.set()
        answers = await asyncio.gather(*tasks[1:], return_exceptions=True)
        return [*answers, await desk.together.ask("again")]

    *away, again = asyncio.run(day())
    assert all(isinstance(one, StoreUnavailableError) for one in away)
    assert again == "AGAIN"
    assert desk.asked == [["first"], ["a1", "b-away", "c1"], ["again"]]


def test_who_has_gone_is_missed_by_nobody(desk: Desk) -> None:
    async def day() -> list[str | BaseException]:
        tasks = [await desk.busy(), *await _asking(desk, "a1", "b1")]
        tasks[1].cancel()
        await asyncio.sleep(0)
        desk.open.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, gone, other = asyncio.run(day())
    assert (first, other) == ("FIRST", "B1")
    assert isinstance(gone, asyncio.CancelledError)


def test_several_loops_are_served_each_in_its_own(desk: Desk) -> None:
    desk.open.set()

    def life(name: str) -> list[str]:
        async def day() -> list[str]:
            return [await desk.together.ask(f"{name}{number}") for number in range(50)]

        return asyncio.run(day())

    with ThreadPoolExecutor(3) as pool:
        lives = list(pool.map(life, "abc"))
    assert lives == [[f"{name}{number}" for number in range(50)] for name in "ABC"]


def test_a_crowd_is_taken_but_for_the_one_whose_submission_breaks(served: Served) -> None:
    """Real requests at once; one learner's goes wrong in the database, and is the only one that is told so."""
    school = served.school
    logins = [f"learner{number}" for number in range(24)]
    shown = {}
    for login in logins:
        person = people.add_person(school.store, login, login)
        enrolments.enrol(school.store, school.course, person)
        shown[login] = tokens.issue_token(
            school.store, person, "t", Scope.SUBMIT, lifetime_s=None, actor_id=None
        )

    @event.listens_for(school.store.engine, "before_cursor_execute")
    def break_off(
        _connection: object, _cursor: object, statement: str, parameters: object, *_: object
    ) -> None:
        if "INSERT INTO sources" in statement and "# learner7" in repr(parameters):
            raise RuntimeError("this one")

    barrier = threading.Barrier(len(logins))

    def hand_in(login: str) -> httpx.Response:
        with served.client(headers={"Authorization": f"Bearer {shown[login]}"}, timeout=60) as client:
            barrier.wait()
            body = {"files": [{"path": "train.py", "text": f"# {login}\n{SCRIPT}"}]}
            return client.post(f"/api/v1/course-tasks/{school.task}/submissions", json=body)

    with ThreadPoolExecutor(len(logins)) as pool:
        answers = dict(zip(logins, pool.map(hand_in, logins), strict=True))
    assert answers.pop("learner7").status_code == 500
    assert {answer.status_code for answer in answers.values()} == {202}
    receipts = {answer.json()["attempt_id"] for answer in answers.values()}
    there = attempts(school.store, AttemptFilter(), limit=100)
    assert {one.id for one in there} == receipts
    assert len({one.person_id for one in there}) == len(receipts) == len(logins) - 1
