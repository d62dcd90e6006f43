"""M1, M1r, M2: what judging adds to a training run, alone and against doing the same by hand.

The script's own time is what the probe saw between the start and the end of the script in the slowest rank; whatever
else passes between handing in the submission and holding the grade is overhead. By hand means the `torchrun` command
from cold, then a cold Python that loads the weights and scores the hidden split.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader.catalog import find_dataset, load_task, read_submission, reference
from grader.model.attempt import Attempt
from grader.model.trace import Trace
from grader.pipeline import Options, Pipeline
from grader.probe import events
from grader.report.html import to_html
from tests.bench.figures import Figure

SCORE_BY_HAND = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, torchvision
from evaluate import build_model, evaluate
data = torchvision.datasets.FashionMNIST(sys.argv[2], train=False)
model = build_model()
model.load_state_dict(torch.load(sys.argv[3], weights_only=True))
print(evaluate(model, data.data, data.targets))
"""


def own_time_s(trace: Trace) -> float:
    """Seconds between the script's start and end in the slowest rank."""
    spans = []
    for rank in trace.ranks:
        end = rank.events(events.END)
        first = min((g.t for g in rank.groups), default=0.0)
        spans.append(end[0].t - min(first, 0.1) if end else 0.0)
    return max(spans)


def measure_overhead(runs: int) -> Iterator[Figure]:
    """All three from the same attempts; every fourth attempt is paired with a run by hand."""
    task = load_task("ddp-fashion")
    promised = reference(task)
    submission = read_submission(promised.path if hasattr(promised, "path") else promised)
    dataset = find_dataset(task, "digits")
    judged, rendered, ratios, by_hand_s = [], [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="grader-bench-") as folder,
        Pipeline(Options(dataset="digits"), lambda sign: None) as pipeline,
    ):
        pipeline.grade(task, submission, Path(folder) / "warm-up")
        for number in range(runs):
            began = time.monotonic()
            attempt, _ = pipeline.grade(task, submission, Path(folder) / str(number))
            total = time.monotonic() - began
            own = _own(attempt)
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
    yield Figure.of("M2 by hand", "process", "s", float("inf"), by_hand_s)


def _own(attempt: Attempt) -> float:
    assert attempt.trace is not None
    return own_time_s(attempt.trace)


def _by_hand(task_folder: Path, script: str, visible: Path, hidden: Path) -> float:
    """Seconds for `torchrun` from cold plus scoring from cold."""
    with tempfile.TemporaryDirectory(prefix="grader-by-hand-") as folder:
        path = Path(folder) / "train.py"
        path.write_text(script, encoding="utf-8")
        env = {**os.environ, "DATA_DIR": str(visible), "OUTPUT_DIR": folder, "OMP_NUM_THREADS": "1"}
        launch = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node=2",
            "--master_addr=127.0.0.1",
        ]
        began = time.monotonic()
        subprocess.run(
            [*launch, "--master_port=0", str(path)], env=env, check=True, capture_output=True, timeout=300
        )
        score = [sys.executable, "-c", SCORE_BY_HAND, str(task_folder), str(hidden), f"{folder}/model.pt"]
        subprocess.run(score, env=env, check=True, capture_output=True, timeout=300)
        return time.monotonic() - began
