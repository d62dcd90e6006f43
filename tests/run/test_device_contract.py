"""A run has the GPUs that it needs or never begins; one that needs none sees none, whatever the machine has.

The driver is a library with a driver's interface: NVML looks well, and nothing can be computed. What a preflight does
on devices that work is shown by the same code on the CPU, with gloo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.run.devices.quarantine import quarantined
from tests.c_compiler import compile_c
from tests.promised import script

Python = Callable[..., "subprocess.CompletedProcess[str]"]

# The library has to know its GPUs in ranks, too, which are given no variable of ours.
PRESET = """
#include <stdlib.h>
__attribute__((constructor)) static void preset(void) { setenv("STUB_GPUS", "ok,ok", 0); }
"""
RUN = """
import json, sys
from pathlib import Path
from grader.launch.system import preflight
from grader.run import fork_server_client
from grader.run.script_runs import run_script
from grader.run.runtimes.process import ProcessRuntime

on_cpu = "; ".join(
    ["from grader.launch.servers import fork_server", "from grader.launch.system import preflight"]
    + ["preflight.DEVICE_TYPE = 'cpu'", "fork_server.main()"]
)
if "works" in sys.argv:
    fork_server_client.COMMAND[1:] = ["-u", "-c", on_cpu]
SCRIPT = '''
import json, os, torch
print(json.dumps({**os.environ, "available": torch.cuda.is_available(), "count": torch.cuda.device_count()}))
'''
with ProcessRuntime() as runtime:
    ran = run_script(runtime, Path(sys.argv[1]), SCRIPT, gpus_per_node=int(sys.argv[2]))
    record = json.loads(ran.workspace.record.read_text())
    driver = preflight._driver_version()
    print(json.dumps({"driver": driver, "record": record, "ranks": [json.loads(ran.out(rank)) for rank in range(2)]}))
"""
HANGS = """
import json, os, sys, time
from pathlib import Path
import grader.launch.system.preflight as preflight
from grader.launch.spec import LaunchSpec

scratch = sys.argv[1]
Path(scratch, "tmp").mkdir()
spec = LaunchSpec("a", "fork", 2, "", (), "", "", "", scratch, scratch, 9.0, gpus=("GPU-a", "GPU-b"))
preflight.DEVICE_TYPE = "cpu"
used, reduced = preflight._use, preflight._reduce

def told(**changes):
    vars(preflight).update({"_use": used, "_reduce": reduced, "PREFLIGHT_S": 60.0} | changes)
    try:
        return [fact["uuid"] for fact in preflight.look_at_devices(spec, lambda: False)]
    except preflight.UnfitDevicesError as error:
        return [error.gpus, str(error)]

def second_dies(uuid, index):
    return used(uuid, index) if index == 0 else os._exit(1)

def second_sleeps(spec, index):
    time.sleep(60 * index)

print(json.dumps({
    "well": told(),
    "dies": told(_use=second_dies),
    "hangs": told(_use=lambda uuid, _: {"uuid": uuid}, _reduce=second_sleeps, PREFLIGHT_S=4.0),
    "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
    "left": os.listdir(f"{scratch}/tmp"),
}))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a driver's library that tells of two GPUs."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "preset.c").write_text(PRESET)
    sources = [Path(__file__).parent / "devices" / "nvml_stub.c", folder / "preset.c"]
    compile_c(*sources, to=folder / "libnvidia-ml.so.1")
    return folder


@pytest.fixture
def python(tmp_path: Path, repository: Path) -> Python:
    """Runs Python with a state folder of its own; `driver`: a folder with a driver's library."""

    def run(
        *arguments: str, driver: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        others = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")}
        own = {"GRADER_STATE_DIR": str(tmp_path / "state")} | variables
        if driver is not None:
            own["LD_LIBRARY_PATH"] = str(driver)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=repository, env=others | own, text=True, capture_output=True, timeout=120,
        )  # fmt: skip

    return run


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_run_on_the_cpu_is_judged_as_if_the_machine_had_no_gpu(
    python: Python, driver: Path, tmp_path: Path
) -> None:
    # Accepted on any machine: where it sees a GPU it takes the one of its local rank.
    file = script("ddp-toy", "accepted/launcher_variables", tmp_path)
    done = python("-m", "grader", "grade", "ddp-toy", str(file), "--profile", "cpu", "--json", driver=driver)
    assert told(done)["verdict"] == "accepted"


def test_ranks_without_gpus_see_none_of_the_machines(python: Python, driver: Path, tmp_path: Path) -> None:
    for rank in told(python("-c", RUN, str(tmp_path), "0", driver=driver))["ranks"]:
        assert not rank["available"]
        assert rank["count"] == 0
        lists = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
        assert [rank[name] for name in lists] == ["", "", ""]


def test_a_gpu_profile_without_gpus_is_refused_before_anything_runs(python: Python, tmp_path: Path) -> None:
    file = script("ddp-toy", "accepted/launcher_variables", tmp_path)
    done = python("-m", "grader", "grade", "ddp-toy", str(file), "--profile", "gpu", "--json")
    assert done.returncode == 4
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "InfraError"
    assert "GPUs are needed, and none can be had here: no NVIDIA driver" in error["message"]
    assert not list((tmp_path / "state").rglob("record.json"))


def test_gpus_that_do_not_compute_are_named_kept_from_others_and_nothing_is_judged(
    python: Python, driver: Path, tmp_path: Path
) -> None:
    file = script("ddp-toy", "accepted/launcher_variables", tmp_path)
    grade = ("-m", "grader", "grade", "ddp-toy", str(file), "--profile", "gpu", "--nproc-per-node", "2")
    done = python(*grade, "--json", driver=driver)
    assert done.returncode == 4
    message = json.loads(done.stdout)["error"]["message"]
    # The words are those that a script would have met.
    assert message.startswith("GPU-a, GPU-b: nothing can be computed there: ")
    assert "Found no NVIDIA driver" in message
    assert not list((tmp_path / "state").rglob("record.json"))
    kept = quarantined(tmp_path / "state" / "devices")
    assert kept.keys() == {"GPU-a", "GPU-b"}
    assert all("Found no NVIDIA driver" in why for why in kept.values())


@pytest.mark.slow
def test_ranks_see_the_gpus_of_their_lease_and_the_record_tells_of_them(
    python: Python, driver: Path, tmp_path: Path
) -> None:
    done = python("-c", RUN, str(tmp_path), "2", "works", driver=driver, GRADER_RANK_ENV="NCCL_P2P_DISABLE=1")
    found = told(done)
    assert [one["uuid"] for one in found["record"]["devices"]] == ["GPU-a", "GPU-b"]
    assert found["driver"] == "580.65.06"
    assert all(one["free_bytes"] > 0 for one in found["record"]["devices"])
    assert found["record"]["environment"]["lease"]["gpus"] == ["GPU-a", "GPU-b"]
    for rank in found["ranks"]:
        assert rank["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
        assert rank["NCCL_P2P_DISABLE"] == "1"
        assert rank["NCCL_SOCKET_IFNAME"] == "=lo"


@pytest.mark.slow
def test_a_preflight_names_who_failed_ends_what_hangs_and_leaves_nothing(
    python: Python, tmp_path: Path
) -> None:
    found = told(python("-c", HANGS, str(tmp_path)))
    assert found["well"] == ["GPU-a", "GPU-b"]
    assert found["dies"] == [
        ["GPU-b"],
        "nothing can be computed there: its process ended without a word",
    ]
    both, why = found["hangs"]
    assert both == ["GPU-a", "GPU-b"]
    assert why == "an all-reduce over them failed: no answer within 4 s"
    assert found["children"] == ""
    assert found["left"] == []
