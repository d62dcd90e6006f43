"""Rate limits: one count for all web processes where Redis is, each its own where it is not, and never an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from grader.store.tables.api_token import Scope
from grader.web.app import create_app
from grader.web.security import rate_limits
from grader.web.security.rate_limits import (
    SIGN_IN_ACCOUNT_AND_ADDRESS,
    TOKEN_ADDRESS,
    RateExceeded,
    RateLimit,
    RateLimiter,
)
from tests.ports import free_port
from tests.web.conftest import PASSWORD, SCRIPT, Browser, School, make_school
from tests.worker.redis_server import Redis

FEW = RateLimit("tests", 3, 60)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path / "redis")
    made.start()
    yield made
    made.stop()


@pytest.fixture(params=["redis", "memory"])
def limiter(request: pytest.FixtureRequest) -> RateLimiter:
    return RateLimiter(request.getfixturevalue("redis").url if request.param == "redis" else "")


def second_instance(school: School, broker: str) -> School:
    """The same school behind another instance of the application, as another process has it."""
    from dataclasses import replace

    service = replace(school.service, rate_limiter=RateLimiter(broker))
    return replace(school, service=service, app=create_app(service))


def sign_in(browser: Browser, login: str, password: str) -> int:
    fields = browser.form("/sign-in")
    return browser.post("/sign-in", data={**fields, "login": login, "password": password}).status_code


# -- What a limit is ---------------------------------------------------------------------------------------------------


def test_so_many_are_let_through_and_the_next_is_told_when_to_come(limiter: RateLimiter) -> None:
    assert [limiter.hit(FEW, "anna") for _ in range(3)] == [None] * 3
    refused = limiter.hit(FEW, "anna")
    assert refused is not None
    assert 1 <= refused.wait_s <= 60
    assert isinstance(limiter.exceeded(FEW, "anna"), RateExceeded)
    # Others are not.
    assert limiter.exceeded(FEW, "ben") is None
    assert limiter.hit(FEW, "ben") is None
    assert limiter.hit(RateLimit("other tests", 3, 60), "anna") is None


def test_asking_counts_nothing_and_what_is_cleared_is_forgotten(limiter: RateLimiter) -> None:
    assert [limiter.exceeded(FEW, "anna") for _ in range(9)] == [None] * 9
    for _ in range(4):
        limiter.hit(FEW, "anna")
    limiter.clear(FEW, "anna")
    assert limiter.exceeded(FEW, "anna") is None
    assert limiter.hit(FEW, "anna") is None


def test_hits_leave_their_window(limiter: RateLimiter) -> None:
    brief = RateLimit("brief tests", 2, 1)
    assert [limiter.hit(brief, "anna") for _ in range(2)] == [None] * 2
    assert limiter.hit(brief, "anna") == RateExceeded(1)
    time.sleep(1.1)
    assert limiter.hit(brief, "anna") is None


def test_no_limit_is_no_limit(limiter: RateLimiter) -> None:
    free = RateLimit("free", 0, 60)
    assert [limiter.hit(free, "anna") for _ in range(50)] == [None] * 50
    assert limiter.exceeded(free, "anna") is None
    limiter.clear(free, "anna")


@pytest.mark.parametrize("key", ["", "a/b/3/60/second", "\ud800 ü \x00\r\n", "x" * 5000])
def test_any_name_is_a_key_of_its_own(limiter: RateLimiter, key: str) -> None:
    for _ in range(4):
        limiter.hit(FEW, key)
    assert limiter.exceeded(FEW, key) is not None
    assert limiter.exceeded(FEW, f"{key} ") is None


def test_many_at_once_are_counted_one_by_one(limiter: RateLimiter) -> None:
    many = RateLimit("many tests", 100, 60)
    answers: list[RateExceeded | None] = []

    def knock() -> None:
        for _ in range(40):
            answers.append(limiter.hit(many, "anna"))

    threads = [threading.Thread(target=knock) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(None) == 100


def test_memory_forgets_whoever_has_not_come_for_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_SWEEP_EVERY", 10)
    limiter, brief = RateLimiter(), RateLimit("brief tests", 5, 1)
    for number in range(200):
        limiter.hit(brief, f"guess {number}")
    time.sleep(1.1)
    # What has left its window is dropped by a timer of the storage, and then its key by us.
    for _ in range(3):
        for _ in range(10):
            limiter.hit(brief, "anna")
        time.sleep(0.1)
    assert len(limiter._memory.events) <= 2


def test_names_do_not_stand_in_the_broker(redis: Redis) -> None:
    limiter = RateLimiter(redis.url)
    limiter.hit(SIGN_IN_ACCOUNT_AND_ADDRESS, "anna.secret@example.org 10.1.2.3")
    done = subprocess.run(
        ["redis-cli", "-p", str(redis.port), "--scan"], capture_output=True, text=True, check=True, timeout=30
    )
    assert len(done.stdout.split()) == 1
    assert "anna" not in done.stdout
    assert "10.1.2.3" not in done.stdout


# -- Several processes -------------------------------------------------------------------------------------------------


@pytest.fixture
def shared(empty_database: Path, tmp_path: Path, redis: Redis) -> Iterator[tuple[School, School, Redis]]:
    """Two instances of the application over one database and one Redis."""
    database = tmp_path / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, tmp_path, broker_url=redis.url, submits_per_minute=6)
    yield school, second_instance(school, redis.url), redis
    school.store.close()


def test_guesses_at_one_instance_count_at_the_other(shared: tuple[School, School, Redis]) -> None:
    first, second, _ = shared
    for number in range(4):
        assert sign_in(first.client(), "anna", f"guess {number}") == 401
        assert sign_in(second.client(), "anna", f"guess {number}") == 401
    assert sign_in(first.client(), "anna", PASSWORD) == 429
    assert sign_in(second.client(), "anna", PASSWORD) == 429
    # Whoever sits at the same address and types their own password is not kept out.
    assert sign_in(second.client(), "ben", PASSWORD) == 303


def test_a_right_password_at_one_clears_the_other(shared: tuple[School, School, Redis]) -> None:
    first, second, _ = shared
    for _ in range(2):
        for number in range(7):
            assert sign_in(first.client(), "anna", f"guess {number}") == 401
        assert sign_in(second.client(), "anna", PASSWORD) == 303


def test_submissions_and_checks_and_tokens_share_their_counts(shared: tuple[School, School, Redis]) -> None:
    first, second, _ = shared
    token = first.token("anna", Scope.SUBMIT)
    address = f"/api/v1/course-tasks/{first.task}/submissions"
    statuses = []
    for number in range(8):
        instance = (first, second)[number % 2]
        body = {"files": [{"path": "train.py", "text": f"# {number}\n{SCRIPT}"}]}
        statuses.append(instance.program(token).post(address, json=body).status_code)
    assert statuses == [202] * 6 + [429] * 2
    limit = TOKEN_ADDRESS.limit
    answers = [
        (first, second)[n % 2].program("grd_guess").get("/api/v1/me").status_code for n in range(limit)
    ]
    assert set(answers) == {401}
    assert first.program("grd_guess").get("/api/v1/me").status_code == 429
    assert second.program("grd_guess").get("/api/v1/me").status_code == 429


def test_without_redis_each_counts_alone(school: School) -> None:
    other = second_instance(school, "filesystem:///nowhere")
    for _ in range(9):
        sign_in(school.client(), "anna", "a guess")
    assert sign_in(school.client(), "anna", PASSWORD) == 429
    assert sign_in(other.client(), "anna", PASSWORD) == 303


@pytest.mark.parametrize(
    ("broker", "shared"),
    [
        ("redis://h:6379/0", True),
        ("rediss://:word@h:6380/1", True),
        ("redis://a:1/0;redis://b:2/0", True),
        ("", False),
        ("filesystem:///state/broker", False),
        ("sentinel://h:26379", False),
    ],
)
def test_what_is_shared_is_said_by_the_brokers_address(broker: str, *, shared: bool) -> None:
    assert RateLimiter(broker).is_shared is shared


# -- Redis goes away ---------------------------------------------------------------------------------------------------


def everything(instance: School, token: str) -> list[int]:
    """What a learner does within a lesson, by status."""
    body = {"files": [{"path": "train.py", "text": SCRIPT}]}
    return [
        sign_in(instance.client(), "anna", PASSWORD),
        sign_in(instance.client(), "ben", "not this one"),
        instance.client().get("/join/ABCDEFGH").status_code,
        instance.program(token).get("/api/v1/me").status_code,
        instance.program("grd_nobody").get("/api/v1/me").status_code,
        instance.program(token).post("/api/v1/lint", json=body).status_code,
        instance.program(token)
        .post(f"/api/v1/course-tasks/{instance.task}/submissions", json=body)
        .status_code,
    ]


USUAL = [303, 401, 404, 200, 401, 200, 202]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_when_redis_dies_or_hangs_everything_goes_on(
    shared: tuple[School, School, Redis], how: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    first, _, redis = shared
    token = first.token("anna", Scope.SUBMIT)
    assert everything(first, token) == USUAL
    assert redis.process is not None
    if how is signal.SIGSTOP:
        redis.process.send_signal(how)
    else:
        redis.stop()
    started = time.monotonic()
    try:
        assert everything(first, token) == USUAL
        assert time.monotonic() - started < 10, "each request waited for Redis"
        # Limits hold all the same, by this process's own count.
        assert 429 in [sign_in(first.client(), "olga", f"guess {number}") for number in range(10)]
    finally:
        if how is signal.SIGSTOP:
            redis.process.send_signal(signal.SIGCONT)
    away = [record for record in caplog.records if "Redis is away" in record.getMessage()]
    assert len(away) == 1, "said once, not at each request"
    assert away[0].levelname == "WARNING"


def test_when_redis_was_never_there_everything_goes_on(empty_database: Path, tmp_path: Path) -> None:
    database = tmp_path / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, tmp_path, broker_url=f"redis://127.0.0.1:{free_port()}/0")
    assert everything(school, school.token("anna", Scope.SUBMIT)) == USUAL
    school.store.close()


def test_when_redis_comes_back_counts_are_shared_again(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rate_limits, "RETRY_S", 0.2)
    caplog.set_level("INFO", logger="grader.web")
    one, other = RateLimiter(redis.url), RateLimiter(redis.url)
    one.hit(FEW, "anna")
    redis.stop()
    assert one.hit(FEW, "anna") is None
    redis.start()
    time.sleep(0.3)
    assert [limiter.hit(FEW, "anna") for limiter in (one, other, one)] == [None] * 3
    assert other.hit(FEW, "anna") is not None
    assert one.exceeded(FEW, "anna") is not None
    assert "Redis is back" in caplog.text


# -- As operators run it -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_of_one_command_share_a_count(
    empty_database: Path, tmp_path: Path, repository: Path, redis: Redis
) -> None:
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    school = make_school(tmp_path / "grader.db", tmp_path)
    school.store.close()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    environment = {"GRADER_STATE_DIR": str(tmp_path), "GRADER_BROKER_URL": redis.url, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "web", "--port", str(port), "--processes", "3"],
        env=os.environ | environment,
        stderr=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    try:
        _wait(lambda: httpx.get(f"{address}/readyz", timeout=5).status_code == 200)
        statuses, ids = [], set()
        for number in range(40):
            # A connection of its own for each, so that the processes take turns.
            body = {"login": "anna", "password": f"guess {number}"}
            answer = httpx.post(f"{address}/api/v1/tokens", json=body, timeout=30)
            statuses.append(answer.status_code)
        for child in psutil.Process(process.pid).children():
            ids.add(child.pid)
        assert len(ids) >= 3
        assert statuses == [401] * 8 + [429] * 32
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert "each for itself" not in log


@pytest.mark.slow
def test_processes_that_cannot_share_say_so(empty_database: Path, tmp_path: Path, repository: Path) -> None:
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "web", "--port", str(port), "--processes", "2"],
        env=os.environ | {"GRADER_STATE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    try:
        _wait(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200)
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert "each for itself" in log
    assert "GRADER_BROKER_URL" in log


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while True:
        try:
            if holds():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)
