"""One set of warm pipelines for all attacks of a module, on data and folders of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trust.host import Host
from tests.trust.judges import Judges, judges_at


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The machine as it was before the first pipeline started; temporary files go to a folder of its own."""
    tmp_path_factory.getbasetemp()
    # Not below pytest's own: names of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="t-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield Host(Path(folder))


@pytest.fixture(scope="module")
def judges(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judges]:
    """Pipelines, opened when first asked for and closed with the module."""
    with judges_at(tmp_path_factory.mktemp("attempts")) as opened:
        yield opened


@pytest.fixture
def runtime(request: pytest.FixtureRequest) -> str:
    """The runtime that a test is parametrised with; docker brings its images, or says why it cannot."""
    name: str = request.param
    if name == "docker":
        request.getfixturevalue("docker_images")
    return name


@pytest.fixture
def unpickled() -> Iterator[Path]:
    """A file that only an unpickled attack would make."""
    path = Path("/tmp/grader-trust-unpickled")
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)
