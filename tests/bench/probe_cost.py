"""M3: what the probe costs inside the training loop, at steps of 2, 10 and 50 ms.

The same two-rank DDP script runs with and without the probe in turn. A step is real work (loader, forward, backward,
optimizer) topped up by sleep to its nominal length, so that the machine's other load moves both sides alike.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.model.submission import SourceFile, Submission
from grader.model.task import Limits
from grader.run.registry import open_runtime
from grader.run.runtime import Job, Runtime
from grader.run.workspace import Workspace
from tests.bench.figures import Figure

STEPS_MS = {2: 400, 10: 150, 50: 40}
"""Nominal step length → steps per run."""

SCRIPT = """
import os, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

pause, steps = float(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(16 * 64, 32), torch.randint(0, 10, (16 * 64,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
done, epoch, began = -20, 0, 0.0
while done < steps:
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        if done == 0:
            dist.barrier()
            began = time.perf_counter()
        time.sleep(pause)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        done += 1
        if done == steps:
            break
    epoch += 1
print("STEP", (time.perf_counter() - began) / steps, flush=True)
dist.destroy_process_group()
"""


def measure_probe_cost(runs: int) -> Iterator[Figure]:
    """Share of step time that the probe adds, one figure per step length."""
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder, open_runtime("process") as runtime:
        runtime.warm()
        base_s = statistics.median(
            _step_s(runtime, Path(folder) / f"base{n}", 0.0, 200, probe=False) for n in range(3)
        )
        for step_ms, steps in STEPS_MS.items():
            pause = max(0.0, step_ms / 1000 - base_s)
            shares = []
            for number in range(max(4, runs // 4)):
                root = Path(folder) / f"{step_ms}-{number}"
                with_probe = _step_s(runtime, root / "with", pause, steps, probe=True)
                without = _step_s(runtime, root / "without", pause, steps, probe=False)
                shares.append(with_probe / without - 1)
            yield Figure.of("M3", f"{step_ms} ms steps", "share", 0.03 if step_ms < 10 else 0.01, shares)


def _step_s(runtime: Runtime, root: Path, pause_s: float, steps: int, *, probe: bool) -> float:
    """Seconds per step of the slower rank."""
    root.mkdir(parents=True)
    data = root / "data"
    data.mkdir()
    workspace = Workspace(root / "attempt")
    workspace.root.mkdir()
    job = Job(
        attempt=f"bench-{root.name}",
        submission=Submission("bench", (SourceFile("train.py", SCRIPT),)),
        entry_point="train.py",
        data_dir=data,
        nproc_per_node=2,
        limits=Limits(wall_s=120, memory_bytes=0, output_bytes=1 << 20, log_bytes=1 << 20),
        probe=probe,
        argv=(str(pause_s), str(steps)),
    )
    runtime.run(job, workspace, lambda sign: None)
    lines = [workspace.log(rank, "out").read_text() for rank in range(2)]
    return max(float(text.split("STEP")[1].split()[0]) for text in lines)
