"""Sites to try workers on: a database, a broker, a state folder each; every process ends with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.catalog.data.datasets import prepare
from grader.settings import settings
from tests.ports import free_port
from tests.store.conftest import Server, server  # noqa: F401 - a fixture
from tests.worker.redis_server import Redis
from tests.worker.rig import Rig

Site = Callable[..., Rig]


@pytest.fixture(scope="session")
def data() -> Path:
    """Prepared data that all sites share."""
    prepare("digits")
    return settings().data_root.absolute()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis server of this test's own."""
    made = Redis(tmp_path / "redis")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def site(tmp_path: Path, data: Path) -> Iterator[Site]:
    """Makes sites: by default SQLite and hints in a folder, as `grader serve` has it."""
    made: list[Rig] = []

    def make(*, broker: str = "", database: str = "", remote: bool = False, **settings: str) -> Rig:
        folder = tmp_path / f"site{len(made)}"
        url = database or f"sqlite:///{folder / 'grader.db'}"
        rig = Rig(folder, data, url, broker, settings, remote=remote)
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.close()


@pytest.fixture(scope="module")
def shared_rig(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[Rig]:
    """One site with a relay and a worker of one slot; see `rig`."""
    folder = tmp_path_factory.mktemp("shared")
    made = Rig(folder, data, f"sqlite:///{folder / 'grader.db'}")
    made.metrics_port = free_port()
    made.relay()
    made.worker("w1", "--metrics-port", str(made.metrics_port))
    yield made
    made.close()


@pytest.fixture
def rig(shared_rig: Rig) -> Iterator[Rig]:
    """The site that tests share which leave it as it is: what one that fails leaves running, the next does not meet."""
    yield shared_rig
    shared_rig.cancel_all()
