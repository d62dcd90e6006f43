"""A worker of a host with 8 GPUs, simulated by a driver's library: it claims what those serve that are fit just now."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.run.devices.quarantine import quarantine
from grader.store.queue.claims import needs_of
from grader.store.queue.queue import queue_state
from tests.run.devices.stub_driver import StubDriver
from tests.worker.conftest import Site
from tests.worker.rig import wait_until


@pytest.mark.slow
def test_a_worker_claims_what_its_fit_gpus_serve(site: Site, tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    driver, rig = StubDriver(tmp_path / "driver"), site()
    driver.shows("ok,ok,ok,ok,ok,ok,ok,ok")
    rig.start("w1", "worker", "--name", "w1", **driver.environment)

    def claims(num_gpus: int) -> bool:
        workers = queue_state(rig.store).workers
        return bool(workers) and workers[0].needs == needs_of(num_gpus)

    wait_until(lambda: claims(8), "it takes everything up to gpu8")
    quarantine(rig.folder / "state" / "devices", "GPU-h", "it fell off the bus in attempt-7")
    driver.shows("ok,mig,ok,busy,ok,ok,ok,ok")
    wait_until(lambda: claims(5), "two GPUs are unfit, one is in quarantine")
    driver.shows("ok,mig,ok,ok,ok,ok,ok,ok")
    wait_until(lambda: claims(6), "one has come back")
    driver.shows("init-hang")
    wait_until(lambda: claims(0), "a driver that hangs leaves what needs no GPU")
    assert "did not answer within 8 s" in rig.logs()
    assert rig.end("w1") == 0
