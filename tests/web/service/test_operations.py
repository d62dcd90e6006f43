"""`grader web` as operators run it: settings from files, JSON logs with ids, metrics, an end in order."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from starlette.testclient import TestClient

from grader.errors import UsageError
from grader.settings.schema import Settings
from grader.web.security.secret_key import service_secret
from tests.ports import free_port
from tests.web.conftest import make_school
from tests.web.grades import graded


def _environment(folder: Path, **more: str) -> dict[str, str]:
    return os.environ | {"GRADER_STATE_DIR": str(folder), "OMP_NUM_THREADS": "1", **more}


def test_the_web_process_serves_logs_and_ends_in_order(
    empty_database: Path, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    school = make_school(tmp_path / "grader.db", tmp_path)
    attempt, token = school.judge("anna", grade=graded()), school.token("anna")
    school.store.close()
    address = tmp_path / "address"
    address.write_text(f"sqlite:///{tmp_path / 'grader.db'}\n")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "web", "--port", str(port)],
        env=_environment(tmp_path, GRADER_DATABASE_URL_FILE=str(address)),
        stderr=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process)
        headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "request-4711"}
        asked = httpx.get(f"{url}/api/v1/attempts/{attempt}?secret=word", headers=headers)
        assert asked.json()["id"] == attempt
        measured = httpx.get(f"{url}/metrics").text
        assert 'route="/api/v1/attempts/{attempt_id}",status="200"} 1.0' in measured
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, log
    lines = [json.loads(line) for line in log.splitlines()]
    told = next(line for line in lines if line.get("request_id") == "request-4711")
    assert told["attempt_id"] == str(attempt)
    assert (told["status"], told["route"]) == (200, "/api/v1/attempts/{attempt_id}")
    assert token not in log
    assert "secret=word" not in log


def _wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert httpx.get(f"{url}/readyz", timeout=5).status_code == 200
            return
        except httpx.TransportError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_several_processes_share_the_port_and_one_that_dies_is_replaced(
    empty_database: Path, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "web", "--port", str(port), "--processes", "2"],
        env=_environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process)
        serving = _serving(process.pid)
        assert len(serving) == 2
        serving[0].kill()
        deadline = time.monotonic() + 60
        while len(now := _serving(process.pid)) < 2 or serving[0] in now:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        _wait_until_ready(url, process)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, log
    assert not [one for one in now if one.is_running()]


def _serving(pid: int) -> list[psutil.Process]:
    """The processes that answer, without the one that multiprocessing keeps for itself."""
    return [
        child
        for child in psutil.Process(pid).children()
        if child.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(child.cmdline())
    ]


def test_a_database_of_another_version_is_not_served(tmp_path: Path, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "web", "--port", "0"],
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        cwd=repository,
        timeout=60,
    )
    assert done.returncode == 4
    assert "grader db upgrade" in done.stderr


def test_metrics_tell_how_attempts_stand_and_only_to_those_who_may_know(
    empty_database: Path, tmp_path: Path
) -> None:
    (tmp_path / "grader.db").write_bytes(empty_database.read_bytes())
    school = make_school(tmp_path / "grader.db", tmp_path, metrics_token="t" * 20)
    school.judge("anna", grade=graded())
    school.hand_in("ben")
    here = TestClient(school.app, client=("127.0.0.1", 5))
    text = here.get("/metrics").text
    assert 'grader_attempts{state="judged",verdict="rejected"} 1.0' in text
    assert 'grader_queue_length{lane="interactive"} 1.0' in text
    assert "grader_queue_oldest_seconds" in text
    assert "grader_database_up 1.0" in text
    far = TestClient(school.app, client=("192.0.2.1", 5))
    assert far.get("/metrics").status_code == 404
    assert far.get("/metrics", headers={"Authorization": f"Bearer {'t' * 20}"}).text.startswith("# HELP")
    assert here.get("/metrics", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 404
    school.store.close()


def test_the_secret_is_made_once_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    made = service_secret("", tmp_path / "state")
    assert len(made) >= 32
    assert service_secret("", tmp_path / "state") == made
    assert stat.S_IMODE((tmp_path / "state" / "secret_key").stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="32"):
        service_secret("short", tmp_path)


def test_secrets_come_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("k" * 40 + "\n")
    monkeypatch.setenv("GRADER_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert Settings.read().secret_key == "k" * 40
    monkeypatch.setenv("GRADER_SECRET_KEY", "given" * 10)
    assert Settings.read().secret_key == "given" * 10
    monkeypatch.delenv("GRADER_SECRET_KEY")
    monkeypatch.setenv("GRADER_SECRET_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="GRADER_SECRET_KEY_FILE"):
        Settings.read()


def test_a_proxys_word_is_taken_only_where_it_is_trusted(empty_database: Path, tmp_path: Path) -> None:
    """Guessing limits are per address: who could choose theirs would have no limit."""
    answers = {}
    for trusted in ("", "127.0.0.1"):
        folder = tmp_path / f"trusts-{trusted or 'nobody'}"
        folder.mkdir()
        (folder / "grader.db").write_bytes(empty_database.read_bytes())
        school = make_school(folder / "grader.db", folder, trusted_proxies=trusted)
        client = TestClient(school.app, client=("127.0.0.1", 5))
        answers[trusted] = {
            client.get(
                "/api/v1/me",
                headers={"Authorization": "Bearer grd_no", "X-Forwarded-For": f"198.51.100.{number % 250}"},
            ).status_code
            for number in range(320)
        }
        school.store.close()
    assert answers == {"": {401, 429}, "127.0.0.1": {401}}
