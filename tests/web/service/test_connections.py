"""Who says nothing keeps nobody out: idle connections, halves of requests, slow readers, and `grader web` itself."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from grader.web.security import connections, overload
from tests.web.conftest import School, Served, make_school, serving
from tests.web.web_process import HALF, SLOW_FORM, connect, ended_after, many_files, web_process

# Each starts web processes, and waits for what they give up.
pytestmark = pytest.mark.slow


@pytest.fixture
def web(empty_database: Path, tmp_path: Path) -> Iterator[int]:
    """The port of a `grader web`."""
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    make_school(tmp_path / "grader.db", tmp_path).store.close()
    with web_process(tmp_path) as found:
        yield found.port


@pytest.mark.parametrize("said", [b"", HALF, SLOW_FORM], ids=["idle", "half a head", "half a body"])
def test_thousands_who_say_nothing_keep_nobody_out(web: int, said: bytes) -> None:
    url = f"http://127.0.0.1:{web}"
    with many_files(), ExitStack() as stack:
        held = [connect(stack, web, said) for _ in range(connections.MOST_CONNECTIONS + 900)]
        # All of them came within seconds, and before this one.
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
        for number in range(60):
            if number % 5 == 0:
                # Whoever comes while they come.
                held.extend(connect(stack, web, said) for _ in range(20))
            assert httpx.get(f"{url}/healthz", timeout=5).status_code == 200
            if number % 20 == 0:
                assert httpx.get(f"{url}/sign-in", timeout=5).status_code == 200


def test_a_request_that_does_not_come_is_not_waited_for(web: int) -> None:
    with ExitStack() as stack:
        idle, half = connect(stack, web, b""), connect(stack, web, HALF)
        dribble = connect(stack, web, HALF)
        stop = threading.Event()

        def more() -> None:
            while not stop.wait(0.5):
                try:
                    dribble.sendall(b"X-More: of it\r\n")
                except OSError:
                    return

        writer = threading.Thread(target=more)
        writer.start()
        try:
            ended_after(dribble, least=connections.HEAD_S - 2, most=connections.HEAD_S + 4)
            for one in (idle, half):
                assert ended_after(one, least=0, most=2) == b""
        finally:
            stop.set()
            writer.join()


def test_a_guests_form_that_does_not_come_is_answered_408(web: int) -> None:
    with ExitStack() as stack:
        slow = connect(stack, web, SLOW_FORM)
        assert b" 408 " in ended_after(slow, least=15, most=28).partition(b"\r\n")[0]


def test_who_hangs_up_while_sending_is_told_apart_from_bad_requests(served: Served) -> None:
    with ExitStack() as gone:
        connect(gone, int(served.url.rpartition(":")[2]), SLOW_FORM)
    count = 'requests_total{method="POST",route="/sign-in",status="499"} 1.0'
    text, until = "", time.monotonic() + 10
    with served.client() as client:
        while count not in text and time.monotonic() < until:
            time.sleep(0.1)
            text = client.get("/metrics").text
    assert count in text


def test_who_is_answered_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between requests there is more time than for one, and an answer that takes its time is not cut."""
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 3.0)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for more in (True, True, False):
            await asyncio.sleep(0.5)
            await send({"type": "http.response.body", "body": b"tick", "more_body": more})

    with serving(slow) as url, ExitStack() as stack:
        one = connect(stack, int(url.rpartition(":")[2]), b"")
        for _ in range(2):
            one.sendall(HALF + b"\r\n")
            said = b""
            while not said.endswith(b"0\r\n\r\n"):
                piece = one.recv(1000)
                assert piece, said
                said += piece
            assert said.count(b"tick") == 3
            time.sleep(1)
        ended_after(one, least=1, most=4)


def test_room_is_made_by_whoever_has_most(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    """One address cannot push out the few connections of another, not even older ones."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 40)
    monkeypatch.setattr(connections, "_GRACE_S", 0.2)
    with serving(school.app) as url, ExitStack() as stack:
        port = int(url.rpartition(":")[2])

        def connect_from(source: str) -> socket.socket:
            return stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(source, 0))
            )

        few = [connect_from("127.0.0.2") for _ in range(3)]
        many = []
        for _ in range(60):
            many.append(connect_from("127.0.0.3"))
            time.sleep(0.02)
        for one in few:
            one.sendall(HALF + b"\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        many[0].settimeout(5)
        assert many[0].recv(1) == b"", "the oldest of those who have most is gone"


def test_a_reader_that_stops_is_not_held_for_ever(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TAKEN_S", 0.5)
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.5)

    num_sent = 0

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        nonlocal num_sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        gone = asyncio.create_task(receive())
        while not gone.done() and num_sent < 10_000:
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)
            num_sent += 1

    with serving(endless) as url, ExitStack() as stack:
        one = connect(stack, int(url.rpartition(":")[2]), HALF + b"\r\n")
        time.sleep(2)
        ended = ended_after(one, least=0, most=10)
    assert num_sent < 10_000
    assert len(ended) < num_sent * 65536


def test_too_many_at_once_are_told_when_to_come_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload, "MOST_REQUESTS", 0)
    with served.client() as client:
        page, program = client.get("/sign-in"), client.get("/api/v1/me")
        assert client.get("/healthz").status_code == 200
    assert (page.status_code, program.status_code) == (503, 503)
    for told in (page, program):
        assert int(told.headers["retry-after"]) >= 1
        assert told.headers["content-security-policy"].startswith("default-src 'none'")
    assert program.json()["error"]["kind"] == "unavailable"
    assert "Nothing of yours is lost" in page.text


def test_places_are_given_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a request ends; and whoever still sends theirs holds none."""
    monkeypatch.setattr(overload, "MOST_REQUESTS", 1)
    port = int(served.url.rpartition(":")[2])
    with ExitStack() as stack, served.client() as client:
        for _ in range(3):
            connect(stack, port, SLOW_FORM)
            time.sleep(0.3)
        for path in ("/sign-in", "/nowhere", "/api/v1/me", "/static/site.css", "/sign-in"):
            assert client.get(path).status_code != 503, path
        for one in range(5):
            with ExitStack() as gone:
                connect(gone, port, SLOW_FORM if one % 2 else HALF + b"\r\n")
        time.sleep(0.3)
        assert client.get("/sign-in").status_code == 200


def test_whoever_sends_too_much_reads_why(served: Served) -> None:
    """However quickly they are refused: the answer is not lost because they are still sending."""
    token = served.school.token("anna")
    address = f"/api/v1/course-tasks/{served.school.task}/submissions"
    headers = {"Authorization": f"Bearer {token}", "content-type": "application/json"}
    with served.client(timeout=30) as client:
        for _ in range(5):
            refused = client.post(address, content=b"x" * (15 << 20), headers=headers)
            assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "too_large")
        assert client.get("/healthz").status_code == 200
