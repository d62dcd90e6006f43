"""M1, M1r, M2: what judging adds to a training run, alone and against doing the same by hand.

The script's own time is what the probe saw between the start and the end of the script in the slowest rank; whatever
else passes between handing in the submission and holding the grade is overhead. By hand means the `torchrun` command
from cold, then a cold Python that loads the weights and scores the hidden split.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader.catalog.data.datasets import find_dataset
from grader.catalog.tasks.task_folders import load_task, reference
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.probe.trace import events
from grader.report.html.attempt_page import to_html
from grader.run.workspace import Workspace
from tests.bench.figures import Figure
from tests.ports import free_port

SCORE_BY_HAND = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from torchvision.datasets.mnist import read_image_file, read_label_file
from evaluate import build_model, evaluate
raw = sys.argv[2] + "/FashionMNIST/raw/t10k-"
images, labels = read_image_file(raw + "images-idx3-ubyte"), read_label_file(raw + "labels-idx1-ubyte")
model = build_model()
model.load_state_dict(torch.load(sys.argv[3], weights_only=True))
print(evaluate(model, images, labels))
"""

OPTIONS = Options(dataset="digits")


def own_time_s(workspace: Workspace, world_size: int) -> float:
    """Seconds between the script's start and end in the slowest rank, from the probe's first and last event."""
    spans: list[float] = []
    for rank in range(world_size):
        lines = workspace.trace(rank).read_text(encoding="utf-8").splitlines()
        first, last = (json.loads(line.partition("\t")[2]) for line in (lines[0], lines[-1]))
        assert (first["e"], last["e"]) == (events.START, events.END), "the reference must run to its end"
        spans.append(last["t"] - first["t"])
    return max(spans)


def measure_overhead(runs: int) -> Iterator[Figure]:
    """All three from the same attempts; every fourth attempt is paired with a run by hand."""
    task = load_task("ddp-fashion")
    promised = reference(task)
    submission = promised.submission
    dataset = find_dataset(task, "digits")
    judged, rendered, ratios, by_hand_s = [], [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="grader-bench-") as folder,
        Pipeline() as pipeline,
    ):
        pipeline.grade(task, submission, options=OPTIONS, out=Path(folder) / "warm-up")
        for number in range(runs):
            began = time.monotonic()
            attempt, workspace = pipeline.grade(
                task, submission, options=OPTIONS, out=Path(folder) / str(number)
            )
            total = time.monotonic() - began
            own = own_time_s(workspace, attempt.grade.world_size)
            judged.append(total - own)
            began = time.monotonic()
            to_html(attempt)
            rendered.append(time.monotonic() - began)
            if number % 4 == 0:
                hand = _by_hand(
                    task.folder, submission.text("train.py") or "", dataset.visible_dir, dataset.hidden_dir
                )
                by_hand_s.append(hand - own)
                ratios.append((total - own) / (hand - own))
    yield Figure.of("M1", "process", "s", 0.7, judged)
    yield Figure.of("M1r", "process", "s", 0.5, rendered)
    yield Figure.of("M2", "process", "ratio", 0.15, ratios)
    yield Figure.of("M2 by hand", "process", "s", None, by_hand_s)


def _by_hand(task_folder: Path, script: str, visible: Path, hidden: Path) -> float:
    """Seconds for `torchrun` from cold plus scoring from cold."""
    with tempfile.TemporaryDirectory(prefix="grader-by-hand-") as folder:
        path = Path(folder) / "train.py"
        path.write_text(script, encoding="utf-8")
        env = {**os.environ, "DATA_DIR": str(visible), "OUTPUT_DIR": folder, "OMP_NUM_THREADS": "1"}
        # Static rendezvous on this host: with a name to look up, torchrun can hang where there is no DNS.
        launch = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node=2",
            "--master_addr=127.0.0.1",
        ]
        launch += [f"--master_port={free_port()}", str(path)]
        began = time.monotonic()
        subprocess.run(launch, env=env, check=True, capture_output=True, timeout=120)
        score = [sys.executable, "-c", SCORE_BY_HAND, str(task_folder), str(hidden), f"{folder}/model.pt"]
        subprocess.run(score, env=env, check=True, capture_output=True, timeout=120)
        return time.monotonic() - began
