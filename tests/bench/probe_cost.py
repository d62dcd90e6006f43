"""M3: what the probe costs inside the training loop, at steps of 2, 10 and 50 ms.

The same two-rank DDP script runs with and without the probe in turn, in pairs whose order changes. A step is real work
(loader, forward, backward, optimizer) topped up by sleep to its nominal length, so that the machine's other load moves
both sides alike. Every run looks closely at the same steps: of each step the median over runs is taken, which drops
what the machine did meanwhile and keeps what the probe did, and then the mean over steps. The spread is of 95 in 100
draws of pairs. Beside wall time stands the processor time of the training thread, which other load hardly moves.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.model.submission import SourceFile, Submission
from grader.model.task import Limits
from grader.run.registry import open_runtime
from grader.run.runtime import Job, Runtime
from grader.run.workspace import Workspace
from tests.bench.figures import Figure

STEPS_MS = {2: 600, 10: 200, 50: 60}
"""Nominal step length → steps per run."""

SCRIPT = """
import json, os, sys, time
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
ends, epoch = [], 0
while len(ends) <= steps:
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        time.sleep(pause)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        ends.append((time.perf_counter(), time.thread_time()))
        if len(ends) > steps:
            break
    epoch += 1
print(json.dumps([(b[0] - a[0], b[1] - a[1]) for a, b in zip(ends, ends[1:])]), flush=True)
dist.destroy_process_group()
"""

NUM_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Timed:
    """One run: seconds of each step on the wall clock, and of the training thread's processor time."""

    wall_s: tuple[float, ...]
    processor_s: tuple[float, ...]


Pair = tuple[Timed, Timed]
"""With the probe, and without."""


def measure_probe_cost(runs: int) -> Iterator[Figure]:
    """Share of step time that the probe adds, two figures per step length."""
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder, open_runtime("process") as runtime:
        runtime.warm()
        bases = [_timed(runtime, Path(folder) / f"base{n}", 0.0, 200, probe=False) for n in range(3)]
        base_s = statistics.median(seconds for base in bases for seconds in base.wall_s)
        for step_ms, steps in STEPS_MS.items():
            pause = max(0.0, step_ms / 1000 - base_s)
            pairs = []
            for number in range(max(4, runs // 4)):
                timed = {}
                for probe in (True, False) if number % 2 else (False, True):
                    root = Path(folder) / f"{step_ms}-{number}-{probe}"
                    timed[probe] = _timed(runtime, root, pause, steps, probe=probe)
                pairs.append((timed[True], timed[False]))
            bar = 0.03 if step_ms < 10 else 0.01
            for setting, share in (("", _wall_share), (", processor", _processor_share)):
                values = _interval(pairs, share)
                yield Figure("M3", f"{step_ms} ms steps{setting}", "share", bar, values, num_runs=len(pairs))


def _interval(pairs: Sequence[Pair], share: Callable[[Sequence[Pair]], float]) -> tuple[float, float, float]:
    """The share over all pairs between the ends of its interval."""
    draw = random.Random(0)
    drawn = sorted(share(draw.choices(pairs, k=len(pairs))) for _ in range(NUM_DRAWS))
    return drawn[NUM_DRAWS // 40], share(pairs), drawn[-NUM_DRAWS // 40]


def _wall_share(pairs: Sequence[Pair]) -> float:
    watched, alone = (_typical(run.wall_s for run in runs) for runs in zip(*pairs, strict=True))
    return watched / alone - 1


def _processor_share(pairs: Sequence[Pair]) -> float:
    watched, alone = (_typical(run.processor_s for run in runs) for runs in zip(*pairs, strict=True))
    return (watched - alone) / _typical(run.wall_s for _, run in pairs)


def _typical(runs: Iterable[Sequence[float]]) -> float:
    """Mean over steps of each step's median over runs."""
    return statistics.fmean(statistics.median(same) for same in zip(*runs, strict=True))


def _timed(runtime: Runtime, root: Path, pause_s: float, steps: int, *, probe: bool) -> Timed:
    """One run; ranks wait for each other, so the first tells for both."""
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
    wall_s, processor_s = zip(*json.loads(workspace.log(0, "out").read_text()), strict=True)
    return Timed(wall_s, processor_s)
