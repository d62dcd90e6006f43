"""A site whose workers are jobs of a real Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm import SlurmCluster
from tests.cluster.slurm_site import SlurmSite
from tests.worker.conftest import data  # noqa: F401 - a fixture
from tests.worker.rig import Rig


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    """Two nodes with four GPUs each, of this test's own."""
    made = SlurmCluster()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cluster: SlurmCluster,
    data: Path,  # noqa: F811
) -> Iterator[SlurmSite]:
    """A site beside the cluster, with a relay; with the parameter `remote` its nodes reach nothing but the service."""
    remote = getattr(request, "param", "") == "remote"
    rig = Rig(tmp_path / "site", data, f"sqlite:///{tmp_path / 'site' / 'grader.db'}", remote=remote)
    rig.settings |= cluster.env | {"GRADER_LOCAL_DIR": str(tmp_path / "node")}
    rig.relay()
    made = SlurmSite(rig, cluster)
    try:
        yield made
    finally:
        made.close()
