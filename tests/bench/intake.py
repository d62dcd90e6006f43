"""M6: 1,000 submissions over HTTP at once, from 50 clients: how many are taken a second, how long a receipt takes.

The server is a real uvicorn in a process of its own, as `grader web` starts it; the clients are bare sockets in this
process, kept open, because both share one machine and a client's own work would be measured otherwise. Afterwards the
database is asked: every receipt's attempt is there once, and nothing besides.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.catalog.tasks.task_folders import load_task, reference
from grader.store import schema
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.database import Store
from grader.store.people import people, tokens
from grader.store.tables.api_token import Scope
from tests.bench.figures import Figure
from tests.bench.web_server import serving
from tests.store.conftest import Server, running_server, server_programs

NUM_SUBMISSIONS, NUM_CLIENTS = 1000, 50
NUM_PROCESSES = min(4, max(1, (os.cpu_count() or 1) // 2))
"""Of the server beside PostgreSQL: as many as half the cores, the database and the clients have the others. A file has
one writer at a time, and gets one process."""
MIN_PER_S, MAX_P99_S = 200.0, 0.150


@dataclass(frozen=True, slots=True)
class Taken:
    """One receipt: how long it took, and what it names."""

    seconds: float
    attempt_id: int


def measure_intake(runs: int) -> Iterator[Figure]:
    """Shares of the bars, so that lower is better, and the figures themselves."""
    repeats = max(1, runs // 7)
    with tempfile.TemporaryDirectory(prefix="grader-intake-") as folder:
        yield from _measure("sqlite", repeats, lambda n: f"sqlite:///{folder}/{n}.db")
    programs = server_programs()
    assert programs is not None, "no PostgreSQL server is installed"
    # As it comes: every receipt is on the disk.
    with running_server(programs, tempfile.gettempdir()) as server:
        yield from _measure("postgresql", repeats, lambda n: _database(server, n))


def _database(server: Server, number: int) -> str:
    server.sql(f"CREATE DATABASE intake_{number}")
    return server.url(f"intake_{number}")


def _measure(kind: str, repeats: int, url_of: Callable[[int], str]) -> Iterator[Figure]:
    rates, tails, medians = [], [], []
    for number in range(repeats):
        seconds, taken = _run(url_of(number))
        times = sorted(one.seconds for one in taken)
        rates.append(1.0 / (len(taken) / seconds))
        tails.append(times[int(len(times) * 0.99)])
        medians.append(statistics.median(times))
        print(
            f"    {kind}: {len(taken) / seconds:.0f}/s, p50 {medians[-1] * 1000:.0f} ms, p99 {tails[-1] * 1000:.0f} ms",
            file=sys.stderr,
        )
    yield Figure.of("M6", f"{kind} s per submission", "s", 1 / MIN_PER_S, rates)
    yield Figure.of("M6", f"{kind} p99", "s", MAX_P99_S, tails)
    yield Figure.of("M6", f"{kind} p50", "s", None, medians)


def _run(url: str) -> tuple[float, list[Taken]]:
    store = Store(url)
    schema.upgrade(store)
    course_task, owners = _learners(store)
    text = reference(load_task("ddp-fashion")).submission.text("train.py") or ""
    # Made beforehand: a learner's own program works on another machine.
    bodies = [_body(number, text) for number in range(NUM_SUBMISSIONS)]
    processes = 1 if store.is_sqlite else NUM_PROCESSES
    with (
        tempfile.TemporaryDirectory(prefix="grader-intake-") as folder,
        serving(url, Path(folder), processes) as port,
    ):
        started = time.perf_counter()
        taken = asyncio.run(_all(port, course_task, list(owners), bodies))
        seconds = time.perf_counter() - started
    _check(store, taken)
    store.close()
    return seconds, taken


def _learners(store: Store) -> tuple[int, list[str]]:
    """A course with the task and as many learners as there are clients; their tokens."""
    task = load_task("ddp-fashion")
    course = courses.add_course(store, "intake", "Intake")
    found = []
    for number in range(NUM_CLIENTS):
        person = people.add_person(store, f"learner-{number}", f"Learner {number}")
        enrolments.enrol(store, course, person)
        found.append(tokens.issue_token(store, person, "bench", Scope.SUBMIT, lifetime_s=3600, actor_id=None))
    # Far off, and counted up to all the same, as in every course that has limits.
    terms = TaskTerms(task.title, task.version, max_per_day=NUM_SUBMISSIONS, max_total=NUM_SUBMISSIONS)
    return courses.set_task(store, course, task.name, "cpu", terms), found


def _check(store: Store, taken: list[Taken]) -> None:
    there = [one.id for one in attempts(store, AttemptFilter(), limit=10 * NUM_SUBMISSIONS)]
    receipts = [one.attempt_id for one in taken]
    assert len(receipts) == len(set(receipts)) == NUM_SUBMISSIONS, "a receipt was given twice"
    lost, double = set(receipts) - set(there), set(there) - set(receipts)
    assert not lost, f"{len(lost)} lost"
    assert not double, f"{len(double)} double"


def _body(number: int, text: str) -> bytes:
    document = {"name": "train", "files": [{"path": "train.py", "text": f"# {number}\n{text}"}]}
    return json.dumps(document).encode()


async def _all(port: int, course_task: int, owners: list[str], bodies: list[bytes]) -> list[Taken]:
    queue = iter(bodies)
    taken: list[Taken] = []
    await asyncio.gather(*(_client(port, course_task, owner, queue, taken) for owner in owners))
    return taken


async def _client(
    port: int, course_task: int, token: str, queue: Iterator[bytes], taken: list[Taken]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in queue:
        head = (
            f"POST /api/v1/course-tasks/{course_task}/submissions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {secrets.token_hex(8)}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        started = time.perf_counter()
        writer.write(head.encode() + body)
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        answer = await reader.readexactly(length)
        seconds = time.perf_counter() - started
        assert b" 202 " in status, (status, answer)
        taken.append(Taken(seconds, json.loads(answer)["attempt_id"]))
    writer.close()
    await writer.wait_closed()
