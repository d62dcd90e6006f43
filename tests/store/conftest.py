"""What the store's tests share: they run on SQLite and on a real PostgreSQL server that the tests start.

Both are asked where locks, constraints, migrations, clocks or the words of a statement have a part in what comes out.
Marked `one_database` is what comes out alike as long as its statements run at all, which other tests see to.

The server is an unprivileged user's, in a temporary folder, on a Unix socket only; each test has a database of its own,
copied from one that is migrated once. Where no server is installed, its half is skipped with the reason.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grader.store import schema
from grader.store.database import Store
from grader.store.tables import Base
from tests.store.campus import Campus

_numbers = itertools.count()


@dataclass
class Server:
    """A PostgreSQL server: its programs, where its socket lies, and the command that starts it."""

    programs: Path
    folder: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, cwd="/", stdout=log, stderr=log)
        ready = [str(self.programs / "pg_isready"), "--quiet", "--host", str(self.folder)]
        deadline = time.monotonic() + 60
        while subprocess.run(ready, check=False).returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once (SIGQUIT) or in order (SIGINT)."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(60)

    def url(self, database: str) -> str:
        return f"postgresql://grader@/{database}?host={self.folder}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        command = [
            str(self.programs / "psql"),
            "--host",
            str(self.folder),
            "--username",
            "grader",
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--set",
            "ON_ERROR_STOP=1",
            "--command",
            statement,
            database,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@dataclass
class Databases:
    """Makes empty databases of one kind, each with our tables in it."""

    kind: str
    folder: Path
    server: Server | None = None
    opened: list[Store] = field(default_factory=list)
    reused: str | None = None

    def url(self, *, empty: bool = False) -> str:
        name = f"test_{next(_numbers)}"
        if self.server is not None:
            self.server.sql(f"CREATE DATABASE {name}" + ("" if empty else " TEMPLATE migrated"))
            return self.server.url(name)
        path = self.folder / f"{name}.db"
        if not empty:
            shutil.copy(self.folder / "migrated.db", path)
        return f"sqlite:///{path}"

    def open(self, url: str | None = None, *, empty: bool = False) -> Store:
        self.opened.append(Store(self.url(empty=empty) if url is None else url))
        return self.opened[-1]

    def clean(self) -> Store:
        """An empty database with our tables; on a server it is one that an earlier test had, which is far quicker."""
        if self.server is None:
            return self.open()
        if self.reused is None:
            self.reused = self.url()
        store = self.open(self.reused)
        with store.write() as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
        return store

    def close(self) -> None:
        while self.opened:
            self.opened.pop().close()


def _quick_folder() -> str:
    """Memory where there is enough: a database is a thousand files, and each test of migrations takes one."""
    memory = "/dev/shm"
    roomy = Path(memory).is_dir() and shutil.disk_usage(memory).free > 2 << 30
    return memory if roomy and os.access(memory, os.W_OK) else "/tmp"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server found; `apt-get install postgresql` brings one")
    # Nothing here outlives the tests, so nothing needs to reach the disk.
    with running_server(programs, _quick_folder(), "fsync=off", "full_page_writes=off") as made:
        yield made


def server_programs() -> Path | None:
    """The folder of the newest server's programs, or None where none is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


@contextmanager
def running_server(programs: Path, parent: str, *settings: str) -> Iterator[Server]:
    """A server with its data in a new folder below `parent`, and these settings."""
    # A short path: that of a socket may not have more than about 100 bytes.
    folder = Path(tempfile.mkdtemp(prefix="grader-pg-", dir=parent))
    as_user = []
    if os.getuid() == 0:
        # A server refuses to be root's.
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    subprocess.run(
        [
            *(*as_user, str(programs / "initdb"), "--pgdata", str(folder / "data"), "--username", "grader"),
            *("--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
        cwd="/",
    )
    made = Server(
        programs,
        folder,
        [*as_user, str(programs / "postgres"), "-D", str(folder / "data"), "-k", str(folder)]
        + [
            part
            for setting in ("listen_addresses=", "max_connections=200", *settings)
            for part in ("-c", setting)
        ],
    )
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Databases that are files."""
    folder = tmp_path_factory.mktemp("databases")
    migrated = Store(f"sqlite:///{folder / 'migrated.db'}")
    schema.upgrade(migrated)
    with migrated.engine.connect() as connection:
        # So that copying the one file copies all of it.
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    migrated.close()
    made = Databases("sqlite", folder)
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgresql(server: Server) -> Iterator[Databases]:
    """Databases of a server."""
    server.sql("CREATE DATABASE migrated")
    migrated = Store(server.url("migrated"))
    schema.upgrade(migrated)
    migrated.close()
    made = Databases("postgresql", server.folder, server)
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on both kinds of databases, unless it says that one is enough."""
    if "databases" in metafunc.fixturenames:
        one = metafunc.definition.get_closest_marker("one_database") is not None
        kinds = ["sqlite"] if one else ["sqlite", "postgresql"]
        metafunc.parametrize("databases", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> Databases:
    """Databases of either kind."""
    made: Databases = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """An empty database with all our tables."""
    yield databases.clean()
    databases.close()


@pytest.fixture
def campus(store: Store) -> Campus:
    """A course with one task and two learners, and short ways to hand in and to judge."""
    return Campus(store)
