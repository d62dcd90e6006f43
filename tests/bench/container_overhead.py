"""M1, M2 and M5 in containers, and M11: what isolation costs, alone and against doing the same by hand.

By hand means `docker run … torchrun` from cold and a second `docker run` that loads the weights and scores the hidden
split, both with the images that the grader uses.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import docker
from docker import DockerClient

from grader.catalog.data.datasets import find_dataset
from grader.catalog.tasks.task_folders import load_task, reference
from grader.model.dataset import PreparedDataset
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.model.task import Limits
from grader.pipeline import Pipeline
from grader.run.engine.inspection import memory_bytes
from grader.run.images import image_name, image_states
from grader.run.registry import open_runtime
from grader.run.runtime import Job
from grader.run.workspace import Workspace
from tests.bench.figures import Figure
from tests.bench.judging_overhead import SCORE_BY_HAND, own_time_s

TRIVIAL = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""
_LIMITS = Limits(wall_s=60.0, memory_bytes=2 << 30, output_bytes=16 << 20, log_bytes=1 << 16)

OPTIONS = Options(dataset="digits")


def measure_container_overhead(runs: int) -> Iterator[Figure]:
    """M1 and M2; every fifth attempt is paired with a run by hand."""
    task = load_task("ddp-fashion")
    submission = reference(task).submission
    dataset = find_dataset(task, "digits")
    judged, ratios, by_hand_s = [], [], []
    client = docker.from_env(timeout=120)
    with (
        tempfile.TemporaryDirectory(prefix="grader-bench-") as folder,
        Pipeline("docker") as pipeline,
    ):
        pipeline.grade(task, submission, options=OPTIONS, out=Path(folder) / "warm-up")
        for number in range(runs):
            # Warm, as between attempts that do not come all at once.
            pipeline.warm(pipeline.setting(task, OPTIONS))
            began = time.monotonic()
            attempt, workspace = pipeline.grade(
                task, submission, options=OPTIONS, out=Path(folder) / str(number)
            )
            total = time.monotonic() - began
            own = own_time_s(workspace, attempt.grade.world_size)
            judged.append(total - own)
            if number % 5 == 0:
                hand = _by_hand(client, task.folder, submission.text("train.py") or "", dataset)
                by_hand_s.append(hand - own)
                ratios.append((total - own) / (hand - own))
    client.close()
    yield Figure.of("M1", "docker", "s", 1.0, judged)
    yield Figure.of("M2", "docker", "ratio", 0.15, ratios)
    yield Figure.of("M2 by hand", "docker", "s", None, by_hand_s)


def measure_throughput(runs: int) -> Iterator[Figure]:
    """M5: seconds per trivial two-rank attempt, fresh containers included, from one slot and from two."""
    for name, bar in (("process", 1.0), ("docker", 5.0)):
        for slots in (1, 2):
            each = max(4, runs // 2)
            with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder:
                roots = [Path(folder) / str(slot) for slot in range(slots)]
                with ThreadPoolExecutor(slots) as threads:
                    spans = list(threads.map(_attempts, repeat(name), roots, repeat(each)))
            # From when the last slot is warm to when the first is done, both slots are busy.
            began, ended = min(span[0] for span in spans), max(span[1] for span in spans)
            yield Figure.of(
                "M5", f"{name}, {slots} slot(s), s per attempt", "s", bar, [(ended - began) / (each * slots)]
            )


def _attempts(runtime_name: str, root: Path, count: int) -> tuple[float, float]:
    """When the first of so many attempts began and the last was over; one before them that does not count."""
    (root / "data").mkdir(parents=True)
    began = 0.0
    with open_runtime(runtime_name) as runtime:
        for number in range(count + 1):
            workspace = Workspace(root / f"run{number}")
            workspace.root.mkdir()
            runtime.run(_trivial(root, number), workspace, lambda _sign: None)
            runtime.release()
            began = began or time.monotonic()
        return began, time.monotonic()


def measure_sizes(_runs: int) -> Iterator[Figure]:
    """M11: images, idle containers."""
    for state in image_states():
        if state.size_bytes is not None:
            yield Figure.of("M11", f"image {state.kind}", "GB", None, [state.size_bytes / 1e9])
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder, open_runtime("docker") as runtime:
        (Path(folder) / "data").mkdir()
        runtime.warm(_trivial(Path(folder), 0))
        client = docker.from_env(timeout=60)
        for role in ("train0", "scorer"):
            found = client.containers.list(filters={"label": [f"grader.role={role}"]})
            sizes = [memory_bytes(client, str(one.id)) / 2**20 for one in found]
            yield Figure.of("M11", f"idle {role}", "MiB", None, sizes)
        client.close()


def _trivial(folder: Path, number: int) -> Job:
    return Job(
        attempt=f"bench-{number}",
        submission=Submission("trivial", (SourceFile("train.py", TRIVIAL),)),
        entry_point="train.py",
        data_dir=folder / "data",
        nproc_per_node=2,
        limits=_LIMITS,
    )


def _by_hand(client: DockerClient, task_folder: Path, script: str, dataset: PreparedDataset) -> float:
    """Seconds for two cold containers, each used once, data and script as mounted folders."""
    with tempfile.TemporaryDirectory(prefix="grader-by-hand-") as folder:
        Path(folder, "train.py").write_text(script, encoding="utf-8")
        mounts = {
            folder: {"bind": "/mine", "mode": "rw"},
            str(dataset.visible_dir): {"bind": "/data", "mode": "ro"},
            str(dataset.hidden_dir): {"bind": "/hidden", "mode": "ro"},
            str(task_folder): {"bind": "/task", "mode": "ro"},
        }
        own_network: dict[str, Any] = {
            "network_mode": "none",
            "hostname": "job",
            "extra_hosts": {"job": "127.0.0.1"},
        }
        variables = {"DATA_DIR": "/data", "OUTPUT_DIR": "/mine", "OMP_NUM_THREADS": "1"}
        launch = ["torchrun", "--nproc_per_node=2", "--master_addr=127.0.0.1", "--master_port=29400"]
        began = time.monotonic()
        for image, command in (
            ("train", [*launch, "/mine/train.py"]),
            ("evaluate", ["python", "-c", SCORE_BY_HAND, "/task", "/hidden", "/mine/model.pt"]),
        ):
            client.containers.run(
                image_name(image),
                command,
                remove=True,
                environment=variables,
                volumes=mounts,
                shm_size="1g",
                **own_network,
            )
        return time.monotonic() - began
