"""Containers with GPUs on a real engine: who gets which, what the engine is asked for, and that they keep them.

The engine is a second one with NVIDIA's hook on its path (`gpus/hook.sh`): devices, their cgroup's rules and the
driver's library come into the containers the way they do on a host with GPUs. No CUDA runs here.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from grader import errors
from grader.run import images
from grader.run.engine.client import connect
from grader.run.engine.container_pair import ContainerPair
from grader.run.engine.container_settings import PairKey
from grader.run.engine.ownership import ROLE, STATE, TOKEN, Ownership, state_name
from grader.run.engine.warm_pool import WarmPool
from grader.settings import settings
from tests.c_compiler import compile_c
from tests.run.devices.stub_driver import StubDriver
from tests.run.gpus.engine import engine_with_gpus

pytestmark = pytest.mark.slow

LOOK = """
import json, os

def opens(name):
    try:
        os.close(os.open("/dev/" + name, os.O_RDWR))
    except OSError as error:
        # No driver is behind it: whoever comes so far was let through.
        return error.strerror == "No such device or address"
    return True

names = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
print(json.dumps({name: opens(name) for name in names}))
"""


@pytest.fixture(scope="module")
def engine(docker_images: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    with (
        engine_with_gpus(tmp_path_factory.mktemp("engine")) as address,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("DOCKER_HOST", address)
        client = connect()
        yield client
        client.close()


def pair_key(**options: Any) -> PairKey:
    return PairKey(
        train_image=images.image_name("train"),
        evaluate_image=images.image_name("evaluate"),
        data_volume="", visible_volume="", hidden_volume="",
        memory_bytes=1 << 30, output_bytes=1 << 20, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def make(engine: docker.DockerClient) -> Iterator[Callable[..., ContainerPair]]:
    ownership = Ownership(settings().state_dir)
    pairs: list[ContainerPair] = []

    def start(**options: Any) -> ContainerPair:
        pairs.append(ContainerPair(engine, ownership, pair_key(**options)))
        return pairs[-1]

    yield start
    for pair in pairs:
        pair.close()
    ownership.close()


@pytest.fixture(scope="module")
def pair(make: Callable[..., ContainerPair]) -> ContainerPair:
    """Two nodes with a GPU each."""
    return make(gpus=("GPU-b", "GPU-d"), nnodes=2, cpus="0")


def containers(engine: docker.DockerClient, pair: ContainerPair) -> dict[str, Container]:
    """By role."""
    found = engine.containers.list(filters={"label": f"{TOKEN}={pair.token}"})
    return {one.labels[ROLE]: one for one in found}


def told_by(container: Container, *command: str, user: str = "") -> str:
    """What a command prints in a container, on either stream."""
    output = container.exec_run(list(command), user=user).output
    assert isinstance(output, bytes)
    return output.decode().strip()


def devices(pair: ContainerPair, container: Container) -> dict[str, bool]:
    """Files of GPUs in a container, and whether a rank may open them."""
    seen: dict[str, bool] = json.loads(told_by(container, "python", "-c", LOOK, user=str(pair.uid)))
    return seen


def test_each_node_has_its_own_gpus_and_the_scorer_none(
    engine: docker.DockerClient, pair: ContainerPair
) -> None:
    made = containers(engine, pair)
    for role, uuid, number in (("train0", "GPU-b", 1), ("train1", "GPU-d", 3)):
        told = made[role].attrs
        (request,) = told["HostConfig"]["DeviceRequests"]
        assert request["DeviceIDs"] == [uuid]
        assert request["Capabilities"] == [["gpu", "compute", "utility"]]
        assert told["HostConfig"]["ReadonlyRootfs"]
        environment = told_by(made[role], "cat", "/proc/1/environ").split("\0")
        assert f"NVIDIA_VISIBLE_DEVICES={uuid}" in environment
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in environment
        assert devices(pair, made[role]) == {f"nvidia{number}": True, "nvidiactl": True}
        assert "Read-only file system" in told_by(made[role], "touch", "/etc/written")
    assert not made["scorer"].attrs["HostConfig"]["DeviceRequests"]
    assert devices(pair, made["scorer"]) == {}


def test_a_pair_without_gpus_sees_none(
    engine: docker.DockerClient, make: Callable[..., ContainerPair]
) -> None:
    pair = make()
    train = containers(engine, pair)["train0"]
    assert not train.attrs["HostConfig"]["DeviceRequests"]
    assert devices(pair, train) == {}
    pair.pin((0,))
    assert told_by(train, "nproc") == "1"


def test_cores_are_there_from_the_start(engine: docker.DockerClient, pair: ContainerPair) -> None:
    made = containers(engine, pair)
    for role in ("train0", "train1"):
        assert made[role].attrs["HostConfig"]["CpusetCpus"] == "0"
        assert told_by(made[role], "nproc") == "1"
    with pytest.raises(ValueError, match="when they are made"):
        pair.pin((0,))


def test_whatever_is_asked_of_a_container_it_keeps_its_devices(
    engine: docker.DockerClient, pair: ContainerPair
) -> None:
    train = containers(engine, pair)["train0"]
    calls: dict[str, Callable[[], object]] = {
        "look at it": train.reload,
        "ask what it takes": lambda: train.stats(stream=False),
        "run something in it": lambda: train.exec_run(["true"]),
        "fetch a file": lambda: list(train.get_archive("/etc/hostname")[0]),
    }
    for call, do in calls.items():
        do()
        assert devices(pair, train) == {"nvidia1": True, "nvidiactl": True}, call
    assert pair.usable


def test_the_doctor_tries_a_container_of_a_job_and_tells_what_failed_in_it(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    """Here is no CUDA: every GPU is there in every table, and no rank can compute on it."""
    driver = StubDriver(tmp_path)
    driver.shows("ok,ok")
    since, mine = time.time(), f"{STATE}={state_name(tmp_path / 'state')}"
    with (tmp_path / "told").open("w") as told_file:
        doctor = subprocess.Popen(
            [sys.executable, "-m", "grader", "doctor", "--gpu", "--runtime", "docker", "--json"],
            env=os.environ | driver.environment | {"GRADER_POOL_PAIRS": "0"}
            # What fails is kept from everybody who shares the folder.
            | {"GRADER_STATE_DIR": str(tmp_path / "state")},
            stdout=told_file,
        )  # fmt: skip
    asked: dict[str, list[str]] = {}
    while doctor.poll() is None:
        for one in engine.containers.list(filters={"label": mine}, ignore_removed=True):
            requests = one.attrs["HostConfig"]["DeviceRequests"] or []
            if one.labels[ROLE] == "train0" and requests:
                asked[str(one.id)] = requests[0]["DeviceIDs"]
        time.sleep(0.2)
    told = json.loads((tmp_path / "told").read_text())
    assert doctor.returncode == errors.EXIT_INFRA_ERROR
    # All GPUs together; what needs one is not tried any more.
    assert list(asked.values()) == [["GPU-a", "GPU-b"]]
    checks = {one["what"]: one for one in told["checks"]}
    assert checks["a job without GPUs"]["ok"], checks
    assert not checks["all GPUs together"]["ok"]
    assert "left out" in checks["a deadlock"]["found"]
    assert [gpu["uuid"] for gpu in told["gpus"]] == ["GPU-a", "GPU-b"]
    assert told["engine"]["Runtimes"]
    # What failed is told in the words of a rank.
    assert "NVIDIA" in json.dumps(told["trials"][1]) or "CUDA" in json.dumps(told["trials"][1])
    (train,) = asked
    happened = engine.api.events(
        since=int(since), until=int(time.time()) + 1, filters={"container": train}, decode=True
    )
    actions = {str(event["Action"]).split(":")[0] for event in happened}
    assert {"create", "start"} <= actions
    assert not actions & {"update", "pause"}, actions


def test_what_waits_for_other_gpus_makes_room(engine: docker.DockerClient, tmp_path: Path) -> None:
    ownership = Ownership(tmp_path)
    pool = WarmPool(engine, ownership, num_pairs=1, most_bytes=1 << 40)

    def waiting() -> set[str]:
        """GPUs of the pairs that are there."""
        found = engine.containers.list(filters={"label": f"{STATE}={ownership.state}"}, ignore_removed=True)
        requests = [one.attrs["HostConfig"]["DeviceRequests"] or [] for one in found]
        return {uuid for asked in requests for one in asked for uuid in one["DeviceIDs"]}

    before, now = pair_key(gpus=("GPU-a",)), pair_key(gpus=("GPU-c",))
    try:
        pool.expect(before)
        pool.wait(before)
        assert waiting() == {"GPU-a"}
        pool.expect(now)
        pool.wait(now)
        deadline = time.monotonic() + 60
        while waiting() != {"GPU-c"}:
            assert time.monotonic() < deadline, waiting()
            time.sleep(0.2)
        pair = pool.take(now)
        assert pair.key == now
        pool.release(pair)
    finally:
        pool.close()
        ownership.close()


def test_hooks_of_cdi_write_before_the_root_is_read_only(tmp_path: Path) -> None:
    """What an engine with CDI has `runc` do: `createContainer` hooks, which link libraries into the container."""
    if shutil.which("runc") is None:
        pytest.skip("no runc")
    root, hook = tmp_path / "root", tmp_path / "hook"
    for name in ("etc", "proc", "dev", "sys"):
        (root / name).mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ncat > {tmp_path}/state\nln -s libcuda.so.1 {root}/etc/linked\n")
    hook.chmod(0o755)
    subprocess.run(["runc", "spec"], cwd=tmp_path, check=True)
    told = json.loads((tmp_path / "config.json").read_text())
    told["root"] = {"path": str(root), "readonly": True}
    told["process"] |= {"terminal": False, "args": ["/writes"]}
    told["hooks"] = {"createContainer": [{"path": str(hook)}]}
    compile_c(Path(__file__).with_name("gpus") / "writes.c", to=root / "writes", options=("-static",))
    (tmp_path / "config.json").write_text(json.dumps(told))
    state = tmp_path / "runc"
    ran = subprocess.run(
        ["runc", "--root", state, "run", f"grader-{secrets.token_hex(8)}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (root / "etc/linked").is_symlink(), ran.stderr
    assert ran.returncode == errno.EROFS, ran.stderr


# The last one: it breaks the pair.
def test_a_pair_that_lost_its_devices_is_not_used(engine: docker.DockerClient, pair: ContainerPair) -> None:
    train = containers(engine, pair)["train1"]
    rules = Path(f"/sys/fs/cgroup/devices/docker/{train.id}/devices.deny")
    if not rules.exists():
        pytest.skip("rules for devices can be changed by hand in the first version of cgroups only")
    assert pair.usable
    # What a reload of systemd does: the rules are written anew from what the engine knows.
    for device in ("195:255", "195:3"):
        rules.write_text(f"c {device} rw")
    assert devices(pair, train) == {"nvidia3": False, "nvidiactl": False}
    assert train.status == "running"
    assert not pair.usable
