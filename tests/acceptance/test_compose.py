"""`docker-compose up` serves a course for real: hand in over HTTP, be judged in containers, survive restarts, restore.

The stack that compose.yaml describes, under a project name of its own, with images of this very version.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.errors import InfraError
from grader.run import images
from tests import promised
from tests.browser.conftest import Window, browser
from tests.ports import free_port

__all__ = ["browser"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHECKOUT = Path(__file__).resolve().parents[2]
ACCEPTED = CHECKOUT / "tasks" / "ddp-toy" / "submissions" / "accepted"
STATE = """
from pathlib import Path
from grader.run.engine.ownership import state_name
print(state_name(Path("/var/lib/grader")))
"""


@dataclass
class Stack:
    """The running service: its compose commands, and the command line of a learner."""

    folder: Path
    variables: dict[str, str]
    url: str
    second_start: str = ""

    def compose(self, *args: str, timeout_s: float = 300) -> str:
        program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        return self._run([*program, *args], timeout_s, CHECKOUT).stdout

    def docker(self, *args: str) -> list[str]:
        return self._run(["docker", *args], 60, CHECKOUT).stdout.split()

    def grader(self, *args: str | Path, typed: str = "", code: int = 0) -> str:
        command = [sys.executable, "-m", "grader", *map(str, args)]
        return self._run(command, 180, self.folder, typed, code).stdout

    def submit(self, name: str) -> dict[str, Any]:
        """Hand in and wait for the verdict; the grade."""
        grade: dict[str, Any] = json.loads(
            self.grader("submit", "ddp-toy", ACCEPTED / name, "--wait", "--json")
        )
        return grade

    def attempts(self) -> list[tuple[int, str]]:
        told = json.loads(self.grader("status", "--json"))["attempts"]
        return [(one["id"], one["verdict"]) for one in told]

    def wait_healthy(self) -> None:
        deadline = time.monotonic() + 180
        while True:
            states = {name: self.health(name) for name in ("web", "worker", "relay", "postgres", "redis")}
            if set(states.values()) == {"healthy"}:
                return
            assert time.monotonic() < deadline, f"{states}\n{self.compose('logs', '--tail=30')}"
            time.sleep(1)

    def health(self, service: str) -> str:
        (container,) = self.compose("ps", "-q", service).split()
        return self.docker("inspect", "--format", "{{.State.Health.Status}}", container)[0]

    def inspect(self, service: str) -> dict[str, Any]:
        (container,) = self.compose("ps", "-q", service).split()
        told = self._run(["docker", "inspect", container], 60, CHECKOUT).stdout
        found: dict[str, Any] = json.loads(told)[0]
        return found

    def _run(
        self, command: list[str], timeout_s: float, cwd: Path, typed: str = "", code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **self.variables, "PYTHONPATH": str(CHECKOUT)},
            input=typed,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    try:
        missing = images.missing(images.KINDS)
    except InfraError as error:
        pytest.skip(str(error))
    if missing:
        pytest.skip(f"{', '.join(missing)} not there; `make images` builds what is missing")
    if not shutil.which("docker-compose") and not shutil.which("docker"):
        pytest.skip("no docker-compose; `apt-get install docker-compose` brings it")
    folder = tmp_path_factory.mktemp("stack")
    subprocess.run([CHECKOUT / "containers" / "secrets.sh", folder / "secrets"], check=True, timeout=30)
    (folder / "backups").mkdir()
    port = free_port()
    made = Stack(
        folder,
        {
            "COMPOSE_PROJECT_NAME": f"grader-test-{secrets.token_hex(4)}",
            "GRADER_PORT": str(port),
            "GRADER_SECRETS": str(folder / "secrets"),
            "GRADER_BACKUPS": str(folder / "backups"),
            "GRADER_CONFIG_DIR": str(folder / "config"),
            **{
                f"GRADER_{kind.upper()}_IMAGE": images.image_name(kind)
                for kind in ("service", "redis", "postgres")
            },
        },
        f"http://127.0.0.1:{port}",
    )
    try:
        made.compose("up", "--detach")
        made.wait_healthy()
        made.second_start = made.compose("run", "--rm", "setup", "setup", "--demo")
        made.grader("login", made.url, "--login", "demo-learner", typed="demo-learner\n")
        yield made
    finally:
        made.compose("down", "--volumes", "--remove-orphans")


def test_the_first_start_shows_an_administrator_s_password_once(stack: Stack) -> None:
    told = stack.compose("logs", "--no-color", "setup")
    assert told.count("Sign in as admin with the password") == 1
    assert "Sign in as admin" not in stack.second_start
    assert "demo-learner" in stack.second_start


def test_a_submission_over_http_is_judged_in_containers(stack: Stack) -> None:
    grade = stack.submit("flat_script.py")
    assert (grade["verdict"], grade["runtime"]) == ("accepted", "docker")
    number, _ = stack.attempts()[0]
    assert "<!doctype html>" in stack.grader("report", str(number), "--html").lower()[:200]


def test_a_learner_hands_in_with_a_browser(stack: Stack, browser: Any, tmp_path: Path) -> None:
    script = promised.script("ddp-toy", "rejected/bypasses_wrapper", tmp_path)
    window = Window(browser, stack.url)
    try:
        window.sign_in("demo-learner", "demo-learner")
        window.page.goto("/courses/1")
        window.page.click(f"text={load_task('ddp-toy').title}")
        window.page.set_input_files("#files", script)
        window.page.wait_for_selector("#found .card")
        window.page.click("main button:has-text('Hand in')")
        window.page.wait_for_selector(".hero h1", timeout=180_000)
        assert window.page.inner_text(".hero h1").startswith("Not accepted yet: ")
        assert window.trouble == []
    finally:
        window.context.close()


def test_nobody_comes_near_the_limits_of_an_idle_service(stack: Stack) -> None:
    """What every part takes once it has judged something, held against what it may take."""
    for name in ("web", "worker", "relay", "redis", "postgres"):
        (container,) = stack.compose("ps", "-q", name).split()
        told = stack.docker("stats", "--no-stream", "--format", "{{.MemPerc}} {{.PIDs}}", container)
        assert float(told[0].rstrip("%")) < 50, (name, told)
        assert int(told[1]) < stack.inspect(name)["HostConfig"]["PidsLimit"] / 2, (name, told)


def test_nobody_has_rights_that_they_do_not_need(stack: Stack) -> None:
    for name in ("web", "worker", "relay", "redis", "postgres"):
        told = stack.inspect(name)
        host = told["HostConfig"]
        assert not host["Privileged"]
        assert host["CapDrop"] == ["ALL"]
        assert not host["CapAdd"]
        assert host["ReadonlyRootfs"]
        assert "no-new-privileges:true" in host["SecurityOpt"]
        assert 0 < host["Memory"] <= 4 << 30
        assert 0 < host["PidsLimit"] <= 2048
        reaches_engine = any(mount["Destination"] == "/var/run/docker.sock" for mount in told["Mounts"])
        assert reaches_engine == (name == "worker")
        assert bool(host["PortBindings"]) == (name == "web")
        for variable in told["Config"]["Env"]:
            for secret in (stack.folder / "secrets").iterdir():
                # Those of mail and sign-on are empty until somebody sets them up.
                held = secret.read_text().strip()
                assert not held or held not in variable, "secrets are files, not variables"
    (network,) = stack.inspect("worker")["NetworkSettings"]["Networks"]
    assert stack.docker("network", "inspect", "--format", "{{.Internal}}", network) == ["true"]


def test_every_part_may_be_restarted(stack: Stack) -> None:
    before = stack.attempts()
    stack.compose("kill", "postgres", "redis", "worker")
    stack.compose("start", "postgres", "redis", "worker")
    stack.compose("restart", "web", "relay")
    stack.wait_healthy()
    assert stack.attempts() == before
    assert stack.submit("trainer_class.py")["verdict"] == "accepted"


def test_a_backup_brings_everything_back(stack: Stack) -> None:
    before = stack.attempts()
    stack.compose("run", "--rm", "tools", "db", "backup", "/backups/site")
    file = stack.folder / "backups" / "site"
    assert file.stat().st_mode & 0o077 == 0, "it holds password hashes"
    stack.grader("submit", "ddp-toy", ACCEPTED / "seed_003.py", "--json")
    assert len(stack.attempts()) == len(before) + 1
    stack.compose("stop", "web", "worker", "relay")
    stack.compose("run", "--rm", "tools", "db", "restore", "/backups/site", "--replace")
    stack.compose("up", "--detach")
    stack.wait_healthy()
    assert stack.attempts() == before
    for number, verdict in before:
        page = stack.grader("report", str(number), "--html", code=int(verdict != "accepted"))
        assert "<!doctype html>" in page.lower()[:200]


def test_going_leaves_nothing_on_the_engine(stack: Stack) -> None:
    project = f"label=com.docker.compose.project={stack.variables['COMPOSE_PROJECT_NAME']}"
    site = stack.compose("exec", "-T", "worker", "python", "-c", STATE).strip()
    stack.compose("down", "--volumes")
    for mark in (project, f"label=grader.site={site}"):
        assert stack.docker("ps", "--all", "--quiet", "--filter", mark) == []
        assert stack.docker("network", "ls", "--quiet", "--filter", mark) == []
        # Data sets are kept on purpose, under the digest of what is in them, for whoever comes next.
        volumes = stack.docker("volume", "ls", "--quiet", "--filter", mark)
        assert [name for name in volumes if not name.startswith("grader-data-")] == []
