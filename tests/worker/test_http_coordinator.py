"""A worker's side of the service: whom it sends its token to, and when it asks again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from grader.errors import InfraError, UsageError
from grader.settings.schema import Settings
from grader.store.database import StoreUnavailableError
from grader.worker.http_coordinator import HttpCoordinator


class Answers(BaseHTTPRequestHandler):
    """Says what it was told to say, and keeps the requests."""

    status, headers_, body = 200, dict[str, str](), b"{}"
    asked: list[str]

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(self.status)
        for name, value in {**self.headers_, "content-length": str(len(self.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST  # noqa: N815 - the names that the library asks for

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def answers() -> Iterator[tuple[type[Answers], str]]:
    kind = type("Told", (Answers,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield kind, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    return Settings(worker_token="grd_secret", state_dir=tmp_path)


def test_a_token_is_sent_to_nobody_who_could_read_it_on_the_way(own: Settings) -> None:
    for server, words in (("http://grader.example.edu", "could be read"), ("ftp://x", "no address")):
        with pytest.raises(UsageError, match=words):
            HttpCoordinator(own, "w1", server)
    with pytest.raises(UsageError, match="GRADER_WORKER_TOKEN_FILE"):
        HttpCoordinator(replace(own, worker_token=""), "w1", "https://grader.example.edu")


def test_a_busy_service_is_left_alone_for_as_long_as_it_asks(
    own: Settings, answers: tuple[type[Answers], str]
) -> None:
    told, url = answers
    told.status, told.headers_ = 429, {"Retry-After": "1"}
    with closing(HttpCoordinator(own, "w1", url)) as coordinator:
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                coordinator.claim(["cpu"], None, None)
        assert len(told.asked) == 1
        time.sleep(1.1)
        told.status, told.body = 200, b'{"idle": "empty", "claimed": null}'
        assert coordinator.claim(["cpu"], None, None) == "empty"


def test_a_redirect_is_followed_nowhere(own: Settings, answers: tuple[type[Answers], str]) -> None:
    told, url = answers
    told.status, told.headers_, told.body = 307, {"Location": f"{url}/elsewhere"}, b""
    with closing(HttpCoordinator(own, "w1", url)) as coordinator, pytest.raises(InfraError, match="307"):
        coordinator.wait_until_ready()
    assert told.asked == ["/api/v1/worker"]


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (200, b"<html>", InfraError, "no grader of this version"),
        (200, b'{"grade_schema": 1}', InfraError, "another version"),
        (404, b"", InfraError, "no grader of this version"),
        (403, b'{"error": {"message": "This is for workers"}}', UsageError, "This is for workers"),
    ],
)
def test_what_answers_is_not_our_service(
    own: Settings,
    answers: tuple[type[Answers], str],
    status: int,
    body: bytes,
    kind: type[Exception],
    words: str,
) -> None:
    told, url = answers
    told.status, told.body = status, body
    with closing(HttpCoordinator(own, "w1", url)) as coordinator, pytest.raises(kind, match=words):
        coordinator.wait_until_ready()
