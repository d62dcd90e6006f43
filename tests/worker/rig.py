"""The service's processes as a site runs them, on a folder of their own: relay and workers, real runs, real brokers.

Of a remote site, workers reach neither database nor broker nor file store, but the service, `grader web`, alone.

Starts `grader worker` and `grader relay` as commands and talks with them as people do: through the database. What a
test starts ends with it, however it ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import select

from grader.catalog.tasks.task_folders import load_task
from grader.model.submission import SourceFile, Submission
from grader.store import events, schema
from grader.store.attempts import attempt_endings, attempts, submissions
from grader.store.attempts.attempts import StoredAttempt
from grader.store.attempts.submissions import Receipt
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.database import Store
from grader.store.events import StoredEvent
from grader.store.people import people
from grader.store.queue.worker_tokens import issue_worker_token, worker_name
from grader.store.tables import AttemptRow
from grader.store.tables.attempt import FINAL, AttemptState
from grader.store.tables.person import Role
from tests import promised
from tests.ports import free_port

CHECKOUT = Path(__file__).resolve().parents[2]
LEASE_S = 6.0
"""Short, so that nobody waits long for its end; a worker on a busy machine reports thrice within it all the same."""
WITHIN_S = 120.0
"""For waiting on a slow machine; no test measures by it."""
TOKEN = "cluster"
_numbers = itertools.count()

SLOW = """import os, time
print("pid", os.getpid(), flush=True)
for step in range(600):
    print("step", step, flush=True)
    time.sleep(0.2)
"""


def wait_until(done: Callable[[], Any], what: str, within_s: float = WITHIN_S) -> Any:
    """The first true answer; fails where none comes."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if answer := done():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {within_s:.0f} s")


@dataclass
class Rig:
    """One site: a state folder, a database, a broker."""

    folder: Path
    data: Path
    database: str
    broker: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    metrics_port: int = 0
    remote: bool = False

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = Store(self.database)
        schema.upgrade(self.store)
        self.course = courses.add_course(self.store, "ddp", "Distributed training")
        self.task = load_task("ddp-toy")
        self.course_task = courses.set_task(
            self.store, self.course, "ddp-toy", "cpu", TaskTerms(title="Toy", version=self.task.version)
        )
        self.anna = self.person("anna")
        self.server = ""
        if self.remote:
            (self.folder / "token").write_text(issue_worker_token(self.store, TOKEN, lifetime_s=None) + "\n")
            port = free_port()
            self.server = f"http://127.0.0.1:{port}"
            self.start("web", "web", "--port", str(port))

    # -- people and what they hand in --------------------------------------------------------------------------------

    def person(self, login: str, role: Role = Role.LEARNER) -> int:
        made = people.add_person(self.store, login, login.title(), role)
        enrolments.enrol(self.store, self.course, made, role)
        return made

    def toy(self, name: str = "accepted/flat_script") -> Submission:
        """One of the task's own submissions, with a comment that makes it a text of its own."""
        read = promised.submission(self.task.name, name)
        (file,) = read.files
        return Submission(read.name, (SourceFile(file.path, f"{file.text}\n# {next(_numbers)}\n"),))

    def script(self, text: str) -> Submission:
        return Submission("train", (SourceFile("train.py", f"{text}\n# {next(_numbers)}\n"),))

    def hand_in(self, submission: Submission | None = None, person: int | None = None, **options: Any) -> int:
        answer = submissions.submit(
            self.store, person or self.anna, self.course_task, submission or self.toy(), **options
        )
        assert isinstance(answer, Receipt), answer
        return answer.attempt_id

    # -- looking -----------------------------------------------------------------------------------------------------

    def facts(self, attempt_id: int) -> StoredAttempt:
        found = attempts.attempt(self.store, attempt_id)
        assert found is not None
        return found

    def events(self, attempt_id: int, kind: str = "") -> list[StoredEvent]:
        found = events.events_of(self.store, attempt_id, limit=5000)
        return [one for one in found if kind in ("", one.kind)]

    def wait(self, attempt_id: int, *states: AttemptState, within_s: float = WITHIN_S) -> StoredAttempt:
        wanted = states or FINAL

        def there() -> StoredAttempt | None:
            found = self.facts(attempt_id)
            assert found.state in wanted or found.state not in FINAL, (found, self.logs())
            return found if found.state in wanted else None

        try:
            reached: StoredAttempt = wait_until(there, f"attempt {attempt_id} {wanted}", within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.facts(attempt_id)}\n{self.logs()}") from None
        return reached

    def wait_running(self, attempt_id: int) -> int:
        """Wait until the script itself has printed its process id, and return that."""

        def pid() -> int | None:
            for one in self.events(attempt_id, "log"):
                for line in one.data["text"].splitlines():
                    if line.startswith("pid "):
                        return int(line.split()[1])
            return None

        try:
            found: int = wait_until(pid, f"attempt {attempt_id} prints")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.facts(attempt_id)}\n{self.logs()}") from None
        return found

    def logs(self) -> str:
        texts = []
        for path in sorted(self.folder.glob("*.log")):
            texts.append(f"--- {path.name}\n{path.read_text(errors='replace')[-6000:]}")
        return "\n".join(texts)

    def cancel_all(self) -> None:
        """Cancel what waits or runs, and wait until nothing does."""
        with self.store.read() as connection:
            left = (
                connection.execute(select(AttemptRow.id).where(AttemptRow.state.not_in(FINAL)))
                .scalars()
                .all()
            )
        for attempt_id in left:
            attempt_endings.cancel(self.store, attempt_id, actor_id=None)
        for attempt_id in left:
            wait_until(partial(self._is_final, attempt_id), f"attempt {attempt_id} ends")

    def _is_final(self, attempt_id: int) -> bool:
        return self.facts(attempt_id).state in FINAL

    # -- processes ---------------------------------------------------------------------------------------------------

    def env(self, **more: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GRADER_")}
        return {
            **kept,
            "PYTHONPATH": str(CHECKOUT),
            "OMP_NUM_THREADS": "1",
            "GRADER_STATE_DIR": str(self.folder / "state"),
            "GRADER_DATA_DIR": str(self.data),
            "GRADER_DATABASE_URL": self.database,
            "GRADER_BROKER_URL": self.broker,
            "GRADER_LEASE_S": str(LEASE_S),
            "GRADER_MIN_FREE_BYTES": "1000000",
            **self.settings,
            **more,
        }

    def start(self, name: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "grader", *arguments],
                cwd=self.folder,
                env=self.env(**env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def worker(self, name: str = "w1", *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        if self.remote:
            arguments = ("--server", self.server, *arguments)
            env = {**self._far_away(), **env}
        return self.start(name, "worker", "--name", name, "--no-gpus", *arguments, **env)

    def _far_away(self) -> dict[str, str]:
        """A token, and nothing that could be reached beside the service."""
        return {
            "GRADER_WORKER_TOKEN_FILE": str(self.folder / "token"),
            "GRADER_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "GRADER_BROKER_URL": "redis://127.0.0.1:1",
            "GRADER_FILE_STORE": "/proc/none",
        }

    def known_as(self, name: str) -> str:
        """What the queue calls a worker."""
        return worker_name(TOKEN, name) if self.remote else name

    def relay(self, name: str = "relay", **env: str) -> subprocess.Popen[bytes]:
        return self.start(name, "relay", "--every", "1", **env)

    def worker_processes(self, name: str = "w1") -> list[psutil.Process]:
        """The processes of a worker that judge, once they are there."""

        def named() -> list[psutil.Process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                below = psutil.Process(self.processes[name].pid).children()
                if self.remote:
                    # The first is the health reporter.
                    return sorted(below, key=lambda child: child.create_time())[1:]
                # Celery writes its name where the command line was.
                return [child for child in below if "celeryd" in " ".join(child.cmdline())]
            return []

        found: list[psutil.Process] = wait_until(named, f"processes of {name}")
        return found

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> int:
        process = self.processes.pop(name)
        process.send_signal(how)
        return process.wait(WITHIN_S)

    def close(self) -> None:
        """End everything; nothing that was started may be left."""
        left = []
        for process in self.processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                left += psutil.Process(process.pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        self.processes.clear()
        self.store.close()
        _gone, alive = psutil.wait_procs(left, timeout=20)
        for process in alive:
            process.kill()
        assert not alive, f"outlived its worker: {alive}"
