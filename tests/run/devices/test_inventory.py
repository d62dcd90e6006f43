"""What this host has: the real driver where there is one, a library with a driver's interface where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.run.devices.inventory import take_inventory
from grader.run.devices.leases import Devices
from grader.run.devices.need import Need
from tests.run.devices.stub_driver import StubDriver

Read = Callable[..., dict[str, Any]]

READ = """
import json
from dataclasses import asdict
from grader.run.devices.nvml import read_gpus
gpus, reason = read_gpus()
print(json.dumps({"gpus": [asdict(gpu) for gpu in gpus], "reason": reason}))
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Read:
    """`read("ok,lost")` reads the GPUs of such a host, in a process of its own."""
    folder = StubDriver(tmp_path_factory.mktemp("driver")).folder

    def run(gpus: str | None, **environment: str) -> dict[str, Any]:
        mine = {"LD_LIBRARY_PATH": str(folder)} | ({} if gpus is None else {"STUB_GPUS": gpus}) | environment
        others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", READ],
            cwd=repository, env=others | mine, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def test_cores_are_those_that_this_process_may_use(tmp_path: Path) -> None:
    cpus = [cpu for core in take_inventory(tmp_path, gpus=False).cores for cpu in core.cpus]
    assert sorted(cpus) == sorted(os.sched_getaffinity(0))


def test_cores_follow_the_affinity(repository: Path) -> None:
    first = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, [{first}])\n"
        "from grader.run.devices.cores import read_cores; print(read_cores())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, check=True, text=True, capture_output=True
    )
    assert done.stdout.startswith(f"(Core(cpus=({first},)")


def test_a_host_has_gpus_or_a_reason_why_not(tmp_path: Path) -> None:
    # With the real library: on most machines it isn't there.
    inventory = take_inventory(tmp_path)
    assert bool(inventory.gpus) != bool(inventory.no_gpus)


@pytest.mark.gpu
def test_the_gpus_of_this_machine(tmp_path: Path) -> None:
    inventory = take_inventory(tmp_path)
    if not inventory.gpus:
        pytest.skip(inventory.no_gpus)
    for gpu in inventory.gpus:
        assert gpu.uuid.startswith("GPU-"), gpu
        assert gpu.name, gpu
    devices = Devices(tmp_path)
    with devices.lease(Need(60, num_gpus=1, num_cores=1), timeout_s=0) as lease:
        assert lease.gpus[0] in {gpu.uuid for gpu in inventory.offered}
        # As CUDA itself sees it under that name.
        done = subprocess.run(
            [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
            env=os.environ | {"CUDA_VISIBLE_DEVICES": lease.gpus[0]}, check=True, text=True, capture_output=True,
        )  # fmt: skip
        assert done.stdout.strip() == "1"


def test_a_driver_that_is_not_loaded_is_a_reason(read: Read) -> None:
    assert read(None) == {
        "gpus": [],
        "reason": "the NVIDIA driver's library is here, but the driver is not loaded",
    }
    assert read("")["reason"] == "the NVIDIA driver is loaded, but shows no GPU"


def test_gpus_by_uuid_with_their_neighbourhood(read: Read) -> None:
    found = read("ok,ok,ok,ok,ok")
    assert found["reason"] == ""
    assert [(gpu["uuid"], gpu["index"], gpu["unfit"]) for gpu in found["gpus"]] == [
        (f"GPU-{letter}", index, "") for index, letter in enumerate("abcde")
    ]
    assert {(gpu["name"], gpu["memory_bytes"]) for gpu in found["gpus"]} == {("Stub 80GB", 80 << 30)}
    assert {(gpu["driver"], gpu["cuda"], gpu["compute_capability"]) for gpu in found["gpus"]} == {
        ("580.65.06", "13.0", "9.0")
    }
    # Not what the driver keeps for itself.
    assert {gpu["used_bytes"] for gpu in found["gpus"]} == {4 << 20}
    assert dict(found["gpus"][0]["distances"]) == {"GPU-b": 0, "GPU-c": 3, "GPU-d": 3, "GPU-e": 6}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("lost", "it does not answer"),
        ("unopened", "it can't be opened"),
        ("mig", "MIG is on (3 slices), and NCCL can't join its slices"),
        ("ecc", "3 uncorrected memory errors"),
        ("worn", "has to be replaced"),
        ("rows", "memory rows wait to be remapped"),
        ("pages", "memory pages wait to be retired"),
        ("xid", "the driver asks for recovery (reset the GPU) after an error"),
        ("prohibited", "its compute mode forbids CUDA"),
    ],
)
def test_an_unfit_gpu_is_named_with_its_reason_and_harms_no_other(
    read: Read, condition: str, reason: str
) -> None:
    first, second, third = read(f"ok,{condition},ok")["gpus"]
    assert reason in second["unfit"]
    assert second["index"] == 1
    assert (first["unfit"], third["unfit"]) == ("", "")
    assert [first["uuid"], third["uuid"]] == ["GPU-a", "GPU-c"]


@pytest.mark.parametrize("condition", ["consumer", "shared", "busy", "drowsy"])
def test_a_gpu_that_lacks_a_feature_or_is_in_use_is_fit(read: Read, condition: str) -> None:
    (gpu,) = read(condition)["gpus"]
    assert gpu["unfit"] == ""
    assert gpu["memory_bytes"] == (0 if condition == "shared" else 80 << 30)
    assert bool(gpu["num_processes"]) == (condition == "busy")
    assert bool(gpu["notes"]) == (condition == "drowsy")


@pytest.mark.parametrize(
    ("chosen", "left"),
    [("1,2", [1, 2]), ("GPU-b", [1]), ("", []), ("-1", []), ("GPU-c, 0", [0, 2]), ("0,1,2", [0, 1, 2])],
)
def test_what_a_scheduler_left_to_others_is_not_offered(read: Read, chosen: str, left: list[int]) -> None:
    gpus = read("ok,ok,ok", CUDA_VISIBLE_DEVICES=chosen)["gpus"]
    assert [gpu["index"] for gpu in gpus if not gpu["unfit"]] == left
    assert all("CUDA_VISIBLE_DEVICES" in gpu["unfit"] for gpu in gpus if gpu["index"] not in left)
