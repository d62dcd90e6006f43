"""Whatever breaks between client and service: nothing is handed in twice, and the reason is said plainly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.tables.api_token import Scope
from tests.client.conftest import Cli, Served

Mishap = Callable[["Between"], bool]


class Between(BaseHTTPRequestHandler):
    """Passes requests on to the service, unless a mishap takes this one."""

    protocol_version = "HTTP/1.1"
    behind: str
    mishaps: list[tuple[str, Mishap]]
    seen: list[str]

    def do_GET(self) -> None:
        self.handle_one()

    def do_POST(self) -> None:
        self.handle_one()

    def handle_one(self) -> None:
        self.seen.append(f"{self.command} {self.path}")
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.mishaps and all(word in self.seen[-1] for word in self.mishaps[0][0].split()):
            _, mishap = self.mishaps.pop(0)
            if mishap(self):
                return
        answer = self.pass_on()
        self.answer_with(answer.status_code, answer.content, answer.headers["content-type"])

    def pass_on(self) -> httpx.Response:
        kept = ("authorization", "content-type", "idempotency-key", "accept")
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        return httpx.request(self.command, self.behind + self.path, headers=headers, content=self.body)

    def answer_with(
        self, status: int, content: bytes = b"{}", kind: str = "application/json", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def busy(request: Between) -> bool:
    request.answer_with(503, Retry_After="0")
    return True


def answer_is_lost(request: Between) -> bool:
    """The service has taken it; nobody hears of that."""
    assert request.pass_on().status_code == 202
    request.close_connection = True
    request.connection.close()
    return True


def has_no_time_to_read(request: Between) -> bool:
    """The receipt comes without findings, as a service gives it that takes many submissions at once."""
    answer = request.pass_on().json() | {"findings": None}
    request.answer_with(202, json.dumps(answer).encode())
    return True


def knows_no_check(request: Between) -> bool:
    """As a service of an earlier version."""
    request.answer_with(404)
    return True


def leads_elsewhere(request: Between) -> bool:
    request.answer_with(307, Location="http://127.0.0.1:9/api/v1/courses")
    return True


def is_something_else(request: Between) -> bool:
    request.answer_with(200, b"<html>a web shop</html>", "text/html")
    return True


@contextmanager
def between(served: Served, *mishaps: tuple[str, Mishap]) -> Iterator[tuple[str, list[str]]]:
    """The address of the proxy, and what it has seen; mishaps with the words of the requests that they take."""
    seen: list[str] = []
    handler = type("One", (Between,), {"behind": served.url, "mishaps": list(mishaps), "seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join(20)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("import torch\n")
    return path


@pytest.fixture
def token(served: Served) -> str:
    return served.school.token("anna", Scope.SUBMIT)


def handed_in(served: Served) -> int:
    return len(attempts(served.school.store, AttemptFilter()))


@pytest.mark.parametrize("mishap", [busy, answer_is_lost])
def test_what_is_tried_again_is_handed_in_once(
    served: Served, cli: Cli, token: str, script: Path, mishap: Mishap
) -> None:
    hand_in = "POST /submissions"
    with between(served, (hand_in, mishap), (hand_in, mishap)) as (url, seen):
        done = cli("submit", "ddp-toy", script, GRADER_URL=url, GRADER_TOKEN=token)
    assert done.returncode == 0, done.stderr
    assert sum(line.endswith("/submissions") for line in seen) == 3
    assert handed_in(served) == 1
    assert "again in" in done.stderr


def test_findings_that_are_not_on_the_receipt_are_asked_for(
    served: Served, cli: Cli, token: str, tmp_path: Path
) -> None:
    flawed = tmp_path / "flawed.py"
    flawed.write_text(
        "import torch\nmodel = torch.nn.DataParallel(torch.nn.Linear(2, 2))\nmodel(x).sum().backward()\n"
    )
    mishaps = ("POST /check", knows_no_check), ("POST /submissions", has_no_time_to_read)
    with between(served, *mishaps) as (url, _):
        done = cli("submit", "ddp-toy", flawed, GRADER_URL=url, GRADER_TOKEN=token)
    assert done.returncode == 0, done.stderr
    assert "GRAD003" in done.stdout


def test_a_course_s_limit_is_said_at_once_and_not_waited_for(
    served: Served, cli: Cli, token: str, script: Path
) -> None:
    school = served.school
    terms = TaskTerms("Toy", "0" * 64, max_concurrent=1)
    courses.set_task(school.store, school.course, "ddp-toy", "cpu", terms)
    school.hand_in("anna")
    with between(served) as (url, seen):
        done = cli("submit", "ddp-toy", script, GRADER_URL=url, GRADER_TOKEN=token)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert sum(line.endswith("/submissions") for line in seen) == 1
    assert handed_in(served) == 1


def test_a_token_goes_nowhere_but_to_its_own_address(served: Served, cli: Cli, token: str) -> None:
    with between(served, ("GET", leads_elsewhere)) as (url, seen):
        done = cli("status", GRADER_URL=url, GRADER_TOKEN=token)
    assert done.returncode == 2
    assert "leads elsewhere" in done.stderr
    assert len(seen) == 1


def test_an_address_of_something_else_is_said(served: Served, cli: Cli, token: str) -> None:
    with between(served, ("GET", is_something_else)) as (url, _):
        done = cli("status", GRADER_URL=url, GRADER_TOKEN=token)
    assert done.returncode == 2
    assert "no grader" in done.stderr


def test_a_service_that_is_away_is_nobody_s_mistake(cli: Cli, tmp_path: Path) -> None:
    done = cli("login", "http://127.0.0.1:9", "--token", typed="grd_x\n", GRADER_PATIENCE_S="1")
    assert done.returncode == 4
    assert "does not answer" in done.stderr
    assert not (tmp_path / "config" / "login.json").exists()
