"""The service behind Debian's nginx with the configuration that operators are given: TLS, slow clients, live views."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from grader.errors import InfraError
from grader.settings import settings
from grader.settings.schema import Settings
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempt_endings import AttemptEnding
from grader.store.queue.claims import Claimed
from grader.store.queue.worker_tokens import issue_worker_token
from grader.store.tables.api_token import Scope
from grader.worker.http_coordinator import HttpCoordinator
from tests.ports import free_port
from tests.web.conftest import PASSWORD, School, make_school
from tests.web.web_process import (
    HALF,
    SLOW_FORM,
    WebProcess,
    connect,
    ended_after,
    many_files,
    wait_until_answers,
    web_process,
)

# Each starts web processes, and waits for what they give up.
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Site:
    """nginx on `port` (TLS) and `plain_port`, the service behind it."""

    port: int
    plain_port: int
    web: WebProcess
    school: School
    certificate: Path

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://localhost:{self.port}", verify=False, timeout=20, headers=headers
        )


@pytest.fixture(scope="module")
def site(empty_database: Path, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Site]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
    if program is None:
        pytest.skip("no nginx found; `apt-get install nginx-light` brings it")
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "grader.db").write_bytes(empty_database.read_bytes())
    school = make_school(folder / "grader.db", folder)
    port, plain_port = free_port(), free_port()
    variables = {
        "GRADER_PUBLIC_URL": f"https://localhost:{port}",
        "GRADER_TRUSTED_PROXIES": "127.0.0.1",
        "GRADER_SECRET_KEY": "s" * 40,
    }
    with web_process(folder, **variables) as web:
        text = (repository / "containers" / "nginx.conf").read_text(encoding="utf-8")
        (folder / "nginx.conf").write_text(_for_a_test(text, folder, web.port, port, plain_port))
        _certificate(folder)
        command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        with (folder / "nginx-errors").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            wait_until_answers(f"https://localhost:{port}/healthz", process, folder / "nginx-errors")
            yield Site(port, plain_port, web, school, folder / "fullchain.pem")
        finally:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait(10)
    school.store.close()


def _for_a_test(text: str, folder: Path, service: int, port: int, plain_port: int) -> str:
    """The given configuration with places, ports and names of a test; nothing else is another."""
    scratch = "".join(
        f"    {kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for old, new in (
        ("user www-data;\n", "" if os.geteuid() else "user root;\n"),
        ("/run/nginx.pid", f"{folder}/nginx.pid"),
        ("/var/log/nginx/error.log", f"{folder}/nginx.log"),
        ("http {\n", "http {\n" + scratch),
        ("server 127.0.0.1:8000;", f"server 127.0.0.1:{service};"),
        ("listen 80 default_server;", f"listen 127.0.0.1:{plain_port} default_server;"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("https://grader.example.edu$request_uri", f"https://localhost:{port}$request_uri"),
        ("server_name grader.example.edu;", "server_name localhost;"),
        ("/etc/ssl/grader/fullchain.pem", f"{folder}/fullchain.pem"),
        ("/etc/ssl/grader/privkey.pem", f"{folder}/privkey.pem"),
        ("worker_processes auto;", "worker_processes 2;"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _certificate(folder: Path) -> None:
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True, timeout=60)


def _sign_in(client: httpx.Client, login: str) -> httpx.Response:
    token = client.get("/sign-in").text.split('name="csrf" value="')[1].split('"')[0]
    data = {"login": login, "password": PASSWORD, "csrf": token}
    return client.post("/sign-in", data=data, headers={"origin": str(client.base_url).rstrip("/")})


def test_a_remote_worker_trusts_the_named_authority_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And brings more than a browser may."""
    token = issue_worker_token(site.school.store, "cluster", lifetime_s=None)
    url = f"https://localhost:{site.port}"
    own = Settings(worker_token=token, state_dir=site.certificate.parent)
    with (
        closing(HttpCoordinator(own, "node1", url)) as stranger,
        pytest.raises(InfraError, match=r"(?i)certificate"),
    ):
        stranger.wait_until_ready()
    trusting = replace(settings(), ca_file=site.certificate)
    monkeypatch.setattr("grader.http.connection.settings", lambda: trusting)
    attempt_id = site.school.hand_in()
    with closing(HttpCoordinator(own, "node1", url)) as worker:
        worker.wait_until_ready()
        claimed = worker.claim(["cpu"], None, None)
        assert isinstance(claimed, Claimed)
        assert claimed.attempt_id == attempt_id
        assert worker.source_of(claimed) is not None
        kept = worker.keep_file(claimed, "evidence.tar.gz", os.urandom(12 << 20))
        assert kept.size == 12 << 20
        assert worker.give_up(claimed) is AttemptEnding.REQUEUED
    attempt_endings.cancel(site.school.store, attempt_id, actor_id=None)


def test_a_browser_signs_in_and_hands_in(site: Site) -> None:
    with site.client() as client:
        assert (
            httpx.get(f"http://localhost:{site.plain_port}/a?b")
            .headers["location"]
            .endswith(f"{site.port}/a?b")
        )
        signed_in = _sign_in(client, "anna")
        assert signed_in.status_code == 303
        assert any(
            cookie.startswith("__Host-session=") for cookie in signed_in.headers.get_list("set-cookie")
        )
        page = client.get("/account")
        assert page.status_code == 200
        assert "max-age" in page.headers["strict-transport-security"]
        program = site.client(Authorization=f"Bearer {site.school.token('anna', Scope.SUBMIT)}")
        files = [{"path": "train.py", "text": "#" * 900_000 + "\n"}, {"path": "b.py", "text": "#" * 900_000}]
        address = f"/api/v1/course-tasks/{site.school.task}/submissions"
        handed_in = program.post(address, json={"files": files})
        assert handed_in.status_code == 202
        too_large = program.post(
            address, content=b"x" * (8 << 20 | 1), headers={"content-type": "application/json"}
        )
        assert too_large.status_code == 413, too_large.text
        assert too_large.headers["content-type"] == "application/json", too_large.text
        program.close()


def test_a_live_view_is_not_held_back(site: Site) -> None:
    attempt = site.school.hand_in("ben")
    with site.client() as client:
        _sign_in(client, "ben")
        with client.stream("GET", f"/attempts/{attempt}/live") as stream:
            lines = stream.iter_lines()
            began = time.monotonic()
            assert next(lines).startswith("retry:")
            while not next(lines).startswith("data:"):
                pass
            assert time.monotonic() - began < 10


def test_nobody_chooses_the_address_that_limits_are_counted_for(site: Site) -> None:
    with site.client() as client:
        answers = {
            client.get(
                "/api/v1/me",
                headers={"Authorization": "Bearer grd_no", "X-Forwarded-For": f"198.51.100.{number % 250}"},
            ).status_code
            for number in range(320)
        }
    assert answers == {401, 429}


def test_thousands_who_say_nothing_reach_nginx_and_nobody_else(site: Site) -> None:
    with many_files(), ExitStack() as stack, site.client() as client:
        for number in range(3000):
            connect(stack, site.port, b"\x16\x03\x01" if number % 2 else b"")
        for number in range(60):
            assert client.get("/healthz").status_code == 200
            if number % 20 == 0:
                assert (
                    httpx.get(f"https://localhost:{site.port}/sign-in", verify=False, timeout=20).status_code
                    == 200
                )
        assert len(site.web.process.net_connections("tcp")) < 100


@pytest.mark.parametrize("said", [b"", HALF], ids=["idle", "half a head"])
def test_nginx_waits_for_no_request_that_does_not_come(site: Site, said: bytes) -> None:
    with ExitStack() as stack:
        said_back = ended_after(connect(stack, site.plain_port, said), least=5, most=25)
    assert not re.match(rb"HTTP/1.1 (200|3)", said_back)


def test_a_slow_form_waits_in_nginx(site: Site) -> None:
    """It never reaches the service, whose places are for requests that are whole."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    before = len(site.web.process.net_connections("tcp"))
    with ExitStack() as stack:
        for _ in range(200):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=20))
            # Wrapped, it is another object, which closes what it was made of.
            stack.enter_context(closing(context.wrap_socket(plain))).sendall(SLOW_FORM)
        with site.client() as client:
            assert client.get("/sign-in").status_code == 200
        assert len(site.web.process.net_connections("tcp")) < before + 50
