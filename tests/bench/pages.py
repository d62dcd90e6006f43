"""M7: the pages that an instructor opens most, of a full course, over HTTP, from a real server in a process of its own.

500 learners × 9 tasks × 5 attempts. The pages are asked for in turn by one browser that is signed in, so that none is
measured while only itself is warm.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from grader.store import schema
from grader.store.database import Store
from grader.store.people import people
from tests.bench.figures import Figure
from tests.bench.web_server import serving
from tests.store.conftest import Server, running_server, server_programs
from tests.store.full_course import full_course

MAX_P95_S = 0.100
NUM_ASKED = 20
_WARM_UP = 3
_PASSWORD = "four quite random words"
_PLACES = {
    "gradebook": "gradebook",
    "gradebook by total": "gradebook?sort=total&order=down&page=3",
    "attempts": "attempts",
    "attempts by verdict": "attempts?verdict=rejected",
    "attempts by code": "attempts?code=DATA001",
    "checks": "checks",
    "stuck": "stuck",
}
_BARRED = ("gradebook", "attempts")
"""M7 names these; the others are told for comparison."""


def measure_pages(runs: int) -> Iterator[Figure]:
    """95th percentile of each page, once per round."""
    rounds = max(1, runs // 4)
    with tempfile.TemporaryDirectory(prefix="grader-pages-") as folder:
        yield from _measure("sqlite", rounds, lambda: f"sqlite:///{folder}/pages.db")
    programs = server_programs()
    assert programs is not None, "no PostgreSQL server is installed"
    with running_server(programs, tempfile.gettempdir()) as server:
        yield from _measure("postgresql", rounds, lambda: _database(server))


def _database(server: Server) -> str:
    server.sql("CREATE DATABASE pages")
    return server.url("pages")


def _measure(kind: str, rounds: int, url_of: Callable[[], str]) -> Iterator[Figure]:
    url = url_of()
    store = Store(url)
    schema.upgrade(store)
    campus = full_course(store)
    people.set_password(store, campus.ines, _PASSWORD, must_change=False, actor_id=None)
    store.close()
    tails: dict[str, list[float]] = {name: [] for name in _PLACES}
    with (
        tempfile.TemporaryDirectory(prefix="grader-pages-") as folder,
        serving(url, Path(folder)) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, follow_redirects=True) as browser,
    ):
        _sign_in(browser)
        for _ in range(_WARM_UP):
            _round(browser, campus.course, 1)
        for _ in range(rounds):
            for name, seconds in _round(browser, campus.course, NUM_ASKED).items():
                tails[name].append(sorted(seconds)[int(len(seconds) * 0.95) - 1])
    for name, values in tails.items():
        print(f"    {kind} {name}: p95 {statistics.median(values) * 1000:.0f} ms", file=sys.stderr)
        bar = MAX_P95_S if name.startswith(_BARRED) else None
        yield Figure.of("M7", f"{kind} {name} p95", "s", bar, values)


def _round(browser: httpx.Client, course: int, number: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in _PLACES}
    for _ in range(number):
        for name, place in _PLACES.items():
            started = time.perf_counter()
            answer = browser.get(f"/courses/{course}/{place}")
            took[name].append(time.perf_counter() - started)
            assert answer.status_code == 200, answer.text
            assert len(answer.content) > 2000, "an empty page measures nothing"
    return took


def _sign_in(browser: httpx.Client) -> None:
    token = re.search(r'name="csrf" value="([^"]+)"', browser.get("/sign-in").text)
    assert token is not None
    form = {"login": "ines", "password": _PASSWORD, "csrf": token[1]}
    answer = browser.post("/sign-in", data=form)
    assert answer.status_code == 200, answer.text
