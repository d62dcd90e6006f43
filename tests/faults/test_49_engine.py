"""Rows 49–50: the engine goes away and comes back, a container is removed behind our back, an image is missing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from grader.run.engine.ownership import ROLE, STATE, state_name
from grader.store.queue.queue import queue_state
from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.faults.proxy import Proxy
from tests.worker.conftest import Site
from tests.worker.rig import CHECKOUT, SLOW, Rig, wait_until

BRIEF = SLOW.replace("600", "100")
pytestmark = pytest.mark.slow


@pytest.fixture
def engine(docker_images: object) -> Iterator[docker.DockerClient]:
    client = docker.from_env(timeout=60)
    yield client
    client.close()


def sites_containers(engine: docker.DockerClient, rig: Rig) -> list[Container]:
    return engine.containers.list(filters={"label": [f"{STATE}={state_name(rig.folder / 'state')}"]})


def out_of_service(rig: Rig) -> bool:
    workers = queue_state(rig.store).workers
    return bool(workers) and workers[0].needs == ()


def test_a_container_is_removed_in_the_middle_of_a_run(site: Site, engine: docker.DockerClient) -> None:
    rig = site(GRADER_RUNTIME="docker")
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in(rig.script(BRIEF))
    rig.wait_running(attempt_id)
    training = [c for c in sites_containers(engine, rig) if c.labels[ROLE].startswith("train")]
    assert training
    # The one at work is the oldest. It goes last: a second try must not find one that is about to go as well.
    for container in sorted(training, key=lambda one: str(one.attrs["Created"]), reverse=True):
        container.remove(force=True)
    facts = rig.wait(attempt_id, AttemptState.JUDGED)
    assert facts.tries == 2
    assert_judged_once(rig, [attempt_id])
    assert rig.end("w1") == 0
    assert sites_containers(engine, rig) == []


def test_the_engine_goes_away_and_comes_back(site: Site, engine: docker.DockerClient) -> None:
    """What a restart looks like to us: all connections end, then nobody answers, then it is there again."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not address.startswith("unix://"):
        pytest.skip("the engine is reached over the network, and this test stands in for a local socket")
    folder = Path(tempfile.mkdtemp(prefix="grader-engine-"))
    try:
        with Proxy(Path(address.removeprefix("unix://")), folder / "engine.sock") as proxy:
            rig = site(GRADER_RUNTIME="docker", DOCKER_HOST=f"unix://{folder / 'engine.sock'}")
            rig.relay()
            rig.worker()
            running = rig.hand_in(rig.script(BRIEF))
            rig.wait_running(running)
            proxy.away = True
            waiting = rig.hand_in()
            wait_until(lambda: out_of_service(rig), "the worker takes itself out")
            rig.wait(running, AttemptState.QUEUED)
            proxy.away = False
            for attempt_id in (running, waiting):
                assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1, "charged for our engine"
            assert_judged_once(rig, [running, waiting])
            assert rig.end("w1") == 0
    finally:
        shutil.rmtree(folder)


def test_a_missing_image_keeps_the_worker_out_of_service(site: Site, docker_images: object) -> None:
    rig = site(GRADER_RUNTIME="docker", GRADER_CONTAINERS_DIR="containers")
    shutil.copytree(CHECKOUT / "containers", rig.folder / "containers")
    with (rig.folder / "containers" / "train.lock").open("a") as lock:
        lock.write("# another version\n")
    rig.relay()
    rig.worker()
    attempt_id = rig.hand_in()
    wait_until(lambda: out_of_service(rig), "the worker reports")
    assert rig.facts(attempt_id).state is AttemptState.QUEUED
    assert "make images" in (rig.folder / "w1.log").read_text()
