"""`grader serve` from nothing: one command, one upload, one report; and its end, which leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests import promised
from tests.ports import free_port
from tests.worker.rig import CHECKOUT, wait_until


@dataclass
class House:
    """A running `grader serve` and what it said at its start."""

    process: subprocess.Popen[str]
    said: dict[str, Any]
    state: Path
    after_sign_in: str = ""

    def browser(self, login: str, password: str) -> httpx.Client:
        """Somebody who is signed in."""
        client = httpx.Client(base_url=self.said["url"], timeout=60, headers={"Origin": self.said["url"]})
        answer = client.post(
            "/sign-in", data={**self.hidden(client, "/sign-in"), "login": login, "password": password}
        )
        assert answer.status_code == 303, answer.text
        self.after_sign_in = answer.headers["location"]
        return client

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        code = self.process.wait(100)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def hidden(self, client: httpx.Client, page: str) -> dict[str, str]:
        return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', client.get(page).text))


def start(state: Path, data: Path, *arguments: str) -> House:
    port = free_port()
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GRADER_")}
    env = {
        **kept,
        "PYTHONPATH": str(CHECKOUT),
        "GRADER_STATE_DIR": str(state),
        "GRADER_DATA_DIR": str(data),
        "GRADER_MIN_FREE_BYTES": "1000000",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "serve", "--json", "--port", str(port), *arguments],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    text = ""
    while not text.endswith("\n}\n"):
        line = process.stdout.readline()
        assert line, "it ended before it served"
        text += line
    return House(process, json.loads(text), state)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[House]:
    made = start(tmp_path_factory.mktemp("house"), data, "--demo")
    yield made
    if made.process.poll() is None:
        made.end(signal.SIGKILL)


def submit(client: httpx.Client, house: House, name: str) -> int:
    courses = client.get("/api/v1/courses").json()
    (course,) = courses["courses"] if isinstance(courses, dict) else courses
    tasks = client.get(f"/api/v1/courses/{course['id']}/tasks").json()
    listed = tasks["tasks"] if isinstance(tasks, dict) else tasks
    (toy,) = [task for task in listed if task["task"] == "ddp-toy"]
    (file,) = promised.submission("ddp-toy", name).files
    body = {"name": "train", "files": [{"path": file.path, "text": file.text}]}
    token = house.hidden(client, "/account")["csrf"]
    answer = client.post(
        f"/api/v1/course-tasks/{toy['id']}/submissions", json=body, headers={"X-CSRF-Token": token}
    )
    assert answer.status_code == 202, answer.text
    return int(answer.json()["attempt_id"])


def ended(client: httpx.Client, attempt_id: int) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        seen: dict[str, Any] = client.get(f"/api/v1/attempts/{attempt_id}").json()
        return seen if seen["state"] not in ("queued", "running") else None

    found: dict[str, Any] = wait_until(there, f"attempt {attempt_id} ends")
    return found


def test_from_nothing_to_a_report(house: House) -> None:
    assert "ddp-toy" in house.said["tasks"]
    learner = {one["login"]: one["password"] for one in house.said["demo"]}
    with closing(house.browser("demo-learner", learner["demo-learner"])) as client:
        attempt_id = submit(client, house, "rejected/never_wrapped")
        seen = ended(client, attempt_id)
        assert (seen["state"], seen["verdict"]) == ("judged", "rejected")
        report = client.get(f"/api/v1/attempts/{attempt_id}/report")
        assert report.status_code == 200
        assert "GRAD003" in report.text or "GRAD001" in report.text


def test_the_first_password_of_the_administrator_has_to_be_changed(house: House) -> None:
    admin = house.said["admin"]
    with closing(house.browser(admin["login"], admin["password"])):
        assert house.after_sign_in == "/password"


def test_processes_that_die_are_started_again(house: House) -> None:
    (worker,) = [
        one for one in psutil.Process(house.process.pid).children() if "worker" in " ".join(one.cmdline())
    ]
    psutil.Process(worker.pid).kill()
    learner = {one["login"]: one["password"] for one in house.said["demo"]}
    with closing(house.browser("demo-learner", learner["demo-learner"])) as client:
        assert ended(client, submit(client, house, "accepted/flat_script"))["verdict"] == "accepted"


def test_its_end_leaves_nothing_and_a_second_start_finds_everything(house: House, data: Path) -> None:
    below = psutil.Process(house.process.pid).children(recursive=True)
    assert len(below) >= 3
    assert house.end(signal.SIGINT) == 0
    _gone, alive = psutil.wait_procs(below, timeout=20)
    assert not alive
    again = start(house.state, data)
    try:
        assert again.said["admin"] is None, "another administrator"
        assert again.said["tasks"] == house.said["tasks"]
        with closing(again.browser("demo-learner", "demo-learner")) as client:
            assert client.get("/api/v1/attempts/1").json()["verdict"] == "rejected"
    finally:
        assert again.end() == 0


def test_a_port_that_is_taken_is_said_before_anything_is_made(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "grader", "serve", "--port", str(port)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "GRADER_STATE_DIR": str(tmp_path / "state")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert not (tmp_path / "state" / "grader.db").exists()
