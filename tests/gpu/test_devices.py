"""What is true of a real GPU: what the driver's tables say of it, who sees it, who gets it, and who is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import scripts
from tests.gpu.conftest import GpuRun, RunOnGpu, smi

HOLD = """
import sys, torch
free, _ = torch.cuda.mem_get_info(0)
held = torch.ones(int(float(sys.argv[1]) * free), dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
print("holding", flush=True)
sys.stdin.read()
"""
TOY = "tasks/ddp-toy/submissions/accepted/launcher_variables.py"
ALONE = ("--profile", "gpu", "--runtime", "process", "--nproc-per-node", "1")


@contextmanager
def held_by_somebody(share: float) -> Generator[int, None, None]:
    """A process that is none of the grader's holds that share of the first GPU's free memory; its id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(share)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def listed(grader: Callable[..., tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    code, told = grader("devices")
    assert code == 0
    gpus = told["gpus"]
    assert isinstance(gpus, list)
    return gpus


def test_what_is_listed_is_what_nvidia_says(grader: Any, recordings: Path) -> None:
    seen = listed(grader)
    rows = smi("uuid", "name", "memory.total")
    (recordings / "nvidia-smi.txt").write_text(
        subprocess.run(["nvidia-smi", "-q"], capture_output=True, text=True, check=True).stdout
    )
    assert [(gpu["uuid"], gpu["name"]) for gpu in seen] == [(uuid, name) for uuid, name, _ in rows]
    for gpu, (_, _, mebibytes) in zip(seen, rows, strict=True):
        assert gpu["memory_bytes"] == pytest.approx(int(mebibytes) << 20, rel=0.01)
    assert seen[0]["unfit"] == ""
    assert seen[0]["num_processes"] == 0
    with held_by_somebody(0.001):
        assert listed(grader)[0]["num_processes"] == 1


def test_a_warm_parent_holds_no_device_and_its_ranks_make_contexts(run: RunOnGpu, runtime: Any) -> None:
    """A fork after a context, or beside a thread, would break every rank."""
    parent = runtime._parent.pid
    files = [entry.readlink() for entry in Path(f"/proc/{parent}/fd").iterdir()]
    assert [file for file in files if file.name.startswith("nvidia")] == []
    assert len(list(Path(f"/proc/{parent}/task").iterdir())) == 1
    ran = run("import json, torch\nprint(json.dumps(torch.ones(3, device='cuda').sum().item()))")
    assert ran.told() == 3.0


def test_a_job_without_gpus_sees_none(run: RunOnGpu) -> None:
    ran = run("import json, torch\nprint(json.dumps(torch.cuda.is_available()))", gpus=0)
    assert ran.told() is False


def test_a_gpu_profile_without_gpus_is_refused(grader: Any) -> None:
    code, told = grader("grade", "ddp-toy", TOY, *ALONE, CUDA_VISIBLE_DEVICES="")
    assert code == 4
    assert "verdict" not in told
    assert "GPU" in told["beside"]


def test_memory_that_somebody_else_holds_is_not_the_learners_fault(grader: Any) -> None:
    with held_by_somebody(0.9):
        assert listed(grader)[0]["unfit"]
        code, told = grader("grade", "ddp-toy", TOY, *ALONE)
    assert code == 4
    assert "verdict" not in told


def test_facts_of_the_gpus_stand_in_the_record(run: RunOnGpu, grader: Any) -> None:
    """They were found by using the GPU, right before the clock began."""
    ran = run("import json, torch\nprint(json.dumps(torch.version.cuda))")
    (device,) = ran.facts["devices"]
    assert device["uuid"] in [row[0] for row in smi("uuid")]
    assert device["driver"] == smi("driver_version")[0][0]
    assert device["cuda"] == ran.told()
    assert 0 < device["free_bytes"] <= device["total_bytes"]


def test_a_driver_that_no_program_can_use_names_the_gpu_and_judges_nobody(
    grader: Any, tmp_path: Path
) -> None:
    """NVML still answers: only a use of the GPU tells."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "libcuda.so.1").write_text("this is no library")
    assert grader("data", "prepare", "digits", GRADER_STATE_DIR=str(tmp_path))[0] == 0
    folders = ":".join(filter(None, (str(broken), os.environ.get("LD_LIBRARY_PATH"))))
    code, told = grader(
        "grade", "ddp-toy", TOY, *ALONE, LD_LIBRARY_PATH=folders, GRADER_STATE_DIR=str(tmp_path)
    )
    assert code == 4
    assert "verdict" not in told
    assert "GPU-" in told["beside"]


@pytest.mark.parametrize(
    "script", [scripts.HOLDS_AND_COMPUTES, scripts.WAITS_IN_NCCL], ids=["kernel", "nccl"]
)
def test_what_is_killed_ends_soon_and_leaves_nothing_on_the_gpu(
    run: RunOnGpu, request: pytest.FixtureRequest, recordings: Path, script: str
) -> None:
    before_mib = int(smi("memory.used")[0][0])
    nproc = 1
    if script is scripts.WAITS_IN_NCCL:
        script, nproc = request.getfixturevalue("sharing") + script, 2
    wall_s = 25.0
    start = time.monotonic()
    ran: GpuRun = run(script, nproc=nproc, wall_s=wall_s)
    took_s = time.monotonic() - start
    assert ran.facts["ending"] == "timed_out"
    over_s = ran.facts["wall_s"] - wall_s
    (recordings / "seconds.json").write_text(json.dumps({"over_s": over_s, "all_s": took_s}))
    assert over_s < 10
    deadline = time.monotonic() + 10
    while (left := int(smi("memory.used")[0][0]) - before_mib) > 64:
        assert time.monotonic() < deadline, f"{left} MiB are still taken"
        time.sleep(0.2)
