"""Faults on real parts; each test is one row of the table of faults, named by its number."""

from __future__ import annotations

import pytest

from tests.store.conftest import server
from tests.worker.conftest import data, redis, rig, shared_rig, site

__all__ = ["data", "redis", "rig", "server", "shared_rig", "site"]


@pytest.fixture(params=[False, True], ids=["beside the database", "over HTTP"])
def remote(request: pytest.FixtureRequest) -> bool:
    """Whether workers reach the service alone; both kinds have to survive the same."""
    return bool(request.param)
