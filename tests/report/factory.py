"""Whole attempts as judging would leave them, for tests that render reports."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.source.script import parse
from grader.evaluate.points.outcome import Outcome
from grader.evaluate.points.rubric import judge_item
from grader.evaluate.points.scale import ScaledItem
from grader.evaluate.time.timing import Timing
from grader.judging.attempt import Attempt
from grader.model.calibration import Calibration, StyleTiming
from grader.model.call_site import Site
from grader.model.diagnosis import Diagnosis
from grader.model.drawn_data import Loader
from grader.model.evaluation import ArtifactProblem, Evaluation, ReportedMetrics
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import CheckResult, Grade, ItemState, RubricResult, State, Verdict
from grader.model.metric import ACCURACY
from grader.model.run import Ending, Failure, Frame, RankRecord, RunRecord, Waiting, WrittenFile
from grader.model.submission import SourceFile, Submission
from grader.model.task import Limits, Profile, RubricItem, Target, Task
from grader.model.trace import Event, RankTrace, Start, Step, Trace
from tests.attempt_facts import attempt_facts

SOURCE = '''\
"""Train a small network on FashionMNIST with several processes."""
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS = 6
BATCH_SIZE = 64


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    transform = transforms.ToTensor()
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transform)
    val_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=False, transform=transform)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(EPOCHS):
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")

    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
    dist.destroy_process_group()


main()
'''

NUM_TRAIN = 1437
EPOCHS = 6
BATCH = 64

DATA001 = Finding(
    code="DATA001",
    severity=Severity.ERROR,
    evidence=EvidenceKind.TRACE,
    message=(
        "Ranks 0 and 1 drew the same 1,437 indices in epochs 0 to 5. `train.py:23` builds the loader with "
        "`shuffle=True` and no sampler, so every rank trains on the whole set: two processes do the same work twice."
    ),
    hint=(
        "Give each rank its own part: `sampler = DistributedSampler(train_set)`, then "
        "`DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler)` without `shuffle`, and call "
        "`sampler.set_epoch(epoch)` at the top of each epoch."
    ),
    where=(Location("train.py", 23, 20), Location("train.py", 31, 9, 35)),
    ranks=(0, 1),
    details={
        "shared_indices": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        "num_shared": 1437,
        "by_epoch": [{"epoch": e, "shared": 1437, "only_one_rank": 0} for e in range(3)],
    },
    confirmed=True,
)
IO002 = Finding(
    code="IO002",
    severity=Severity.WARNING,
    evidence=EvidenceKind.OUTSIDE,
    message="Both ranks printed the same kind of line: 6 lines came from rank 0 and 6 from rank 1.",
    hint='Print on one rank only: `if rank == 0: print(f"epoch {epoch}: …")`.',
    where=(Location("train.py", 36, 9),),
    ranks=(0, 1),
    details={"lines_by_rank": {"rank 0": 6, "rank 1": 6}},
)
EVAL003 = Finding(
    code="EVAL003",
    severity=Severity.HINT,
    evidence=EvidenceKind.SOURCE,
    message="`val_loader` is built and never used, so nothing is known about the model until the judge scores it.",
    hint="Score the validation set once per epoch and reduce the sums over all ranks.",
    where=(Location("train.py", 24, 18),),
)
TRUST002 = Finding(
    code="TRUST002",
    severity=Severity.REVIEW,
    evidence=EvidenceKind.OUTSIDE,
    message="The trace claims 400 steps in 0.1 s of CPU time.",
)


def task() -> Task:
    rubric = (
        RubricItem("runs", "The script runs to its end on every rank", 10, True, ("DIST001",), None),
        RubricItem(
            "partition", "Every sample goes to exactly one rank", 25, True, ("DATA001", "DATA003"), None
        ),
        RubricItem("gradients", "Gradients are averaged over the ranks", 25, True, ("GRAD001",), None),
        RubricItem("io", "One rank prints and saves", 10, False, ("IO001", "IO002"), None),
        RubricItem("devices", "Each rank uses its own device", 5, False, ("DEV001",), None),
        RubricItem("accuracy", "Accuracy on unseen data", 15, True, (), "accuracy"),
        RubricItem("time", "Training time", 15, False, (), "time"),
    )
    return Task(
        name="ddp-fashion",
        title="FashionMNIST on several GPUs",
        lab="Lab 2",
        summary="Refactor a single-GPU script to DistributedDataParallel.",
        folder=Path("tasks/ddp-fashion"),
        skeleton=Path("skeletons/ddp-fashion"),
        version="5d41402abc4b2a76b9719d911017c592" * 2,
        launcher="fork",
        entry_point="train.py",
        datasets=("digits",),
        checks=(),
        must=("DATA002",),
        profiles=(Profile("cpu", "gloo", 2, 1, Limits(120, 4 << 30, 1 << 28, 4 << 20)),),
        metrics=(ACCURACY,),
        samples="images",
        targets=(Target("accuracy", levels={"digits": 0.9}), Target("time", factor=1.35)),
        rubric=rubric,
        statement="Make it run on all GPUs.",
    )


def submission(text: str = SOURCE, name: str = "no_sampler") -> Submission:
    return Submission(name, (SourceFile("train.py", text),))


def shards(overlap: bool, epochs: int = EPOCHS, ranks: int = 2) -> tuple[tuple[tuple[int, ...], ...], ...]:
    out = []
    for epoch in range(epochs):
        order = list(range(NUM_TRAIN))
        random.Random(epoch).shuffle(order)
        out.append(tuple(tuple(order if overlap else order[rank::ranks]) for rank in range(ranks)))
    return tuple(out)


def rank_trace(rank: int, num_steps: int = 138, seconds: float = 3.2) -> RankTrace:
    noise = random.Random(rank)
    site = Site("train.py", 35, "main")
    gap = (seconds - 0.4) / num_steps
    steps = tuple(
        Step(
            n=n,
            optimizer=0,
            kind="SGD",
            lr=(0.1 * min(1.0, (n + 1) / 20),),
            samples=BATCH,
            data_s=gap * 0.2,
            compute_s=gap * 0.55,
            optimizer_s=gap * 0.1,
            loss=0.2 + 2.1 * math.exp(-n / 30) + noise.gauss(0, 0.08),
            grads=(1.0, 2.0),
            grad_names=("0.weight", "0.bias"),
            synced=True,
            rss_bytes=300_000_000 + n * 50_000,
            device_bytes=None,
            site=site,
            t=0.3 + (n + 1) * gap + (0.02 * (n // 23)),
        )
        for n in range(num_steps)
    )
    loader = Loader(
        0, Site("train.py", 23, "main"), "FashionMNIST", 0, NUM_TRAIN, NUM_TRAIN, "train", "RandomSampler", None, None,
        None, True, BATCH, False, 0, False, True, 0.2,
    )  # fmt: skip
    spans = [
        Event("evaluation", step.t + 0.002 + 0.016 * end, None, {"op": "end" if end else "begin"})
        for step in steps[22::23]
        for end in (0, 1)
    ]
    return RankTrace(
        rank=rank,
        start=Start("2.9.0", "3.11.2", rank, rank, 2, 100 + rank, 7 + rank),
        ended=True,
        loaders=(loader,),
        steps=steps,
        others=tuple(spans),
        num_lines=600,
        last_t=seconds,
    )


def trace(**kwargs: float) -> Trace:
    return Trace((rank_trace(0, **kwargs), rank_trace(1, **kwargs)))  # type: ignore[arg-type]


def rank_record(rank: int, **changes: object) -> RankRecord:
    record = RankRecord(
        rank=rank, exit_code=0, killed_by_judge=False, started_s=0.01 * rank, ended_s=3.4 + 0.02 * rank,
        cpu_user_s=2.9 + 0.1 * rank, cpu_system_s=0.2, peak_rss_bytes=402_000_000, stdout_bytes=180, stderr_bytes=0,
        stdout_lines=6, output_cut=False, trace_bytes=120_000, trace_cut=False,
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def run_record(
    *ranks: RankRecord, ending: Ending = Ending.COMPLETED, reason: str = "Every rank ended."
) -> RunRecord:
    return RunRecord(
        runtime="process",
        launcher="fork",
        isolated=False,
        world_size=2,
        ending=ending,
        ending_reason=reason,
        wall_s=3.42,
        deadline_s=120.0,
        ranks=ranks or (rank_record(0), rank_record(1)),
        outputs=(WrittenFile("model.pt", 409_000, 3.1), WrittenFile("metrics.json", 700, 3.2)),
        phases_s={"prepare": 0.05, "collect": 0.02},
        environment={
            "python": "3.11.2",
            "torch": "2.9.0",
            "cpu": "8-core test machine",
            "cores": 2,
            "load": 0.7,
        },
    )


def evaluation() -> Evaluation:
    epochs = tuple(
        {
            "train_loss": 0.2 + 0.9 * math.exp(-e),
            "val_loss": 0.35 + 0.6 * math.exp(-e),
            "val_accuracy": 0.94 - 0.4 * math.exp(-e),
            "seconds": 0.5,
        }
        for e in range(EPOCHS)
    )
    return Evaluation(
        problem=None,
        artifact="model.pt",
        artifact_bytes=409_000,
        hidden={"accuracy": 0.941, "loss": 0.31},
        validation={"accuracy": 0.936, "loss": 0.33},
        num_hidden=180,
        num_validation=180,
        reported=ReportedMetrics(epochs),
        seconds=0.2,
    )


def calibration(provisional: bool = False) -> Calibration:
    styles = (
        StyleTiming(
            "accepted/distributed_sampler.py",
            (2.9, 3.0, 3.1, 2.95, 3.05),
            {"accuracy": (0.94, 0.94, 0.95, 0.94, 0.93)},
        ),
        StyleTiming(
            "accepted/own_sampler.py",
            (2.8, 2.85, 2.9, 2.75, 2.82),
            {"accuracy": (0.94, 0.94, 0.95, 0.94, 0.93)},
        ),
        StyleTiming(
            "accepted/accumulation.py",
            (3.1, 3.2, 3.15, 3.3, 3.18),
            {"accuracy": (0.94, 0.94, 0.95, 0.94, 0.93)},
        ),
    )
    return Calibration(
        "ddp-fashion",
        "5d41",
        "cpu",
        "digits",
        2,
        "test",
        styles,
        1600.0,
        5.4,
        provisional,
        0.4,
        "2030-01-01T00:00:00Z",
    )


def _item(
    item: RubricItem, earned: float, state: ItemState, reason: str, codes: tuple[str, ...] = ()
) -> RubricResult:
    kinds = {"accuracy": EvidenceKind.EVALUATION, "time": EvidenceKind.OUTSIDE}
    points = 0.0 if state is ItemState.NOT_SHOWN else item.points
    seen = () if state is ItemState.NOT_SHOWN else (kinds.get(item.id, EvidenceKind.TRACE),)
    return RubricResult(
        item.id, item.title, item.must, points, item.points, earned, state, seen, reason, codes
    )


def rubric(
    lost: dict[str, tuple[str, ...]] | None = None, why: str = "The target was missed."
) -> tuple[RubricResult, ...]:
    lost = lost or {}
    out = []
    for item in task().rubric:
        if item.id == "devices":
            out.append(_item(item, 0, ItemState.NOT_SHOWN, "There are no GPUs in this profile."))
        elif item.id in lost:
            reason = f"{' and '.join(lost[item.id])} was found." if lost[item.id] else why
            out.append(_item(item, 0, ItemState.LOST, reason, lost[item.id]))
        else:
            out.append(
                _item(item, item.points, ItemState.EARNED, "Looked at every step of both ranks; all is well.")
            )
    return tuple(out)


def _unreached(items: tuple[RubricResult, ...], *names: str) -> tuple[RubricResult, ...]:
    why = "The run ended before this could be seen."
    return tuple(
        replace(item, earned=0.0, state=ItemState.NOT_REACHED, reason=why) if item.id in names else item
        for item in items
    )


CHECKS = (
    CheckResult("DEV001", State.NOT_OBSERVABLE, (), "The script ran without GPUs."),
    CheckResult("DIST001", State.VERIFIED, (EvidenceKind.TRACE,), "Both ranks joined one gloo group of 2."),
    CheckResult(
        "DIST002", State.VERIFIED, (EvidenceKind.TRACE,), "Both ranks left the group before they ended."
    ),
    CheckResult(
        "GRAD001",
        State.VERIFIED,
        (EvidenceKind.TRACE,),
        "Gradients were equal to the bit in 24 of 24 sampled steps.",
    ),
    CheckResult(
        "GRAD007",
        State.VERIFIED,
        (EvidenceKind.TRACE,),
        "All 4 trained tensors are equal on both ranks at the end.",
    ),
    CheckResult(
        "IO001", State.VERIFIED, (EvidenceKind.TRACE, EvidenceKind.OUTSIDE), "Rank 0 alone wrote `model.pt`."
    ),
)


def grade(verdict: Verdict = Verdict.ACCEPTED, **changes: object) -> Grade:
    items = rubric()
    whole = Grade(
        task="ddp-fashion",
        task_version=task().version,
        submission="no_sampler",
        digest="0f343b0931126a20f133d67c2b018a3b" * 2,
        profile="cpu",
        dataset="digits",
        world_size=2,
        runtime="process",
        verdict=verdict,
        verdict_reason="All that this task asks for was seen.",
        points=100.0,
        max_points=100.0,
        rubric=items,
        findings=(),
        checks=CHECKS,
        metrics={
            "accuracy": 0.941,
            "accuracy_target": 0.9,
            "validation_accuracy": 0.936,
            "cpu_s": 3.2,
            "time_target_s": 4.29,
            "wall_s": 3.42,
            "samples_per_s": 2700.0,
            "samples_per_s_one_rank": 1600.0,
            "speedup": 1.69,
            "efficiency": 0.84,
        },
        phases={"prepare": 0.05, "run": 3.42, "collect": 0.02, "evaluate": 0.2, "judge": 0.04},
        environment={
            "python": "3.11.2",
            "torch": "2.9.0",
            "cpu": "8-core test machine",
            "cores": 2,
            "load": 0.7,
        },
        notes=(
            "The process runtime does not isolate scripts from this machine; use it for code that you trust.",
        ),
        measures=(ACCURACY,),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


LOGS = tuple(("".join(f"epoch {e}: loss {1 / (e + 1):.3f}\n" for e in range(EPOCHS)), "") for _ in range(2))


def attempt(
    *,
    task: Task,
    submission: Submission,
    grade: Grade,
    coverage: tuple[tuple[tuple[int, ...], ...], ...] = (),
    **run: Any,
) -> Attempt:
    """An attempt at a submission; `run`: fields of the evidence, none where nothing was run."""
    facts, script = attempt_facts(submission, dataset="digits"), parse(submission)
    evidence = Evidence(facts, script, **run) if run else SourceEvidence(facts, script)
    return Attempt(task, evidence, grade, coverage)


def with_evidence(whole: Attempt, **changes: Any) -> Attempt:
    """The same attempt with other evidence."""
    return replace(whole, evidence=replace(whole.evidence, **changes))


def accepted() -> Attempt:
    text = SOURCE.replace("shuffle=True", "sampler=sampler")
    return attempt(
        task=task(),
        submission=submission(text, "distributed_sampler"),
        grade=grade(submission="distributed_sampler", findings=(EVAL003,)),
        record=run_record(),
        trace=trace(),
        evaluation=evaluation(),
        calibration=calibration(),
        logs=LOGS,
        coverage=shards(overlap=False),
    )


def rejected() -> Attempt:
    lost = {"partition": ("DATA001",), "io": ("IO002",), "time": ()}
    judged = grade(
        Verdict.REJECTED,
        verdict_reason="Every rank trains on the whole data set, so the work is not divided (DATA001).",
        points=45.0,
        rubric=rubric(lost),
        findings=(DATA001, IO002, EVAL003, TRUST002),
        checks=(
            *CHECKS,
            CheckResult("DATA001", State.CONTRADICTED, (EvidenceKind.TRACE,), "Ranks share samples."),
        ),
    )
    slow = {
        **judged.metrics,
        "cpu_s": 6.3,
        "wall_s": 6.62,
        "samples_per_s": 2300.0,
        "speedup": 1.44,
        "efficiency": 0.72,
    }
    return attempt(
        task=task(),
        submission=submission(),
        grade=replace(judged, metrics=slow),
        record=replace(
            run_record(
                rank_record(0, cpu_user_s=5.9, ended_s=6.6), rank_record(1, cpu_user_s=6.1, ended_s=6.62)
            ),
            wall_s=6.62,
        ),
        trace=trace(num_steps=276, seconds=6.4),
        evaluation=evaluation(),
        calibration=calibration(provisional=True),
        logs=LOGS,
        coverage=shards(overlap=True),
    )


def near_miss(accuracy: float = 0.8983) -> Attempt:
    """A run that misses its accuracy by little, with the sentences that judging really writes."""
    whole = with_evidence(
        accepted(), evaluation=replace(evaluation(), hidden={"accuracy": accuracy, "loss": 0.31415})
    )
    outcome = Outcome(whole.evidence, whole.task, (), (), Timing(None, None, 0.0, "", 0))
    items = tuple(
        judge_item(ScaledItem(item, item.points), (), outcome) if item.metric == "accuracy" else judged
        for item, judged in zip(whole.task.rubric, whole.grade.rubric, strict=True)
    )
    reason = next(item.reason for item in items if item.id == "accuracy")
    judged = replace(
        whole.grade,
        verdict=Verdict.REJECTED,
        verdict_reason=f"What must be right is not yet: “Accuracy on unseen data”: {reason}",
        rubric=items,
        metrics={**whole.grade.metrics, "accuracy": accuracy, "loss": 0.31415, "validation_loss": 0.33},
    )
    return replace(whole, grade=judged)


def deadlocked() -> Attempt:
    text = SOURCE.replace("    if rank == 0:\n", "    if rank == 0:\n        dist.barrier()\n")
    library = Frame("/opt/python/torch/distributed/distributed_c10d.py", 4818, "barrier", in_submission=False)
    site, other = Frame("train.py", 39, "main", True), Frame("train.py", 41, "main", True)
    destroy = Frame("/opt/python/torch/distributed/distributed_c10d.py", 2150, "destroy_process_group", False)
    top = Frame("train.py", 44, "<module>", True)
    stuck = Finding(
        "DIST009",
        Severity.ERROR,
        EvidenceKind.OUTSIDE,
        "Rank 0 waits in `barrier` at `train.py:39`, and rank 1 waits in `destroy_process_group` at `train.py:41`. "
        "A collective ends only when every rank calls it.",
        "Move `dist.barrier()` out of the `if rank == 0:` block, or leave it out: nothing here needs it.",
        where=(Location("train.py", 39, 9), Location("train.py", 41, 5)),
        ranks=(0, 1),
        details={
            "stacks": {
                "rank 0": "train.py:39 in main\ntrain.py:44 in <module>",
                "rank 1": "train.py:41 in main",
            }
        },
    )
    stopped = {"exit_code": None, "killed_by_judge": True, "ended_s": 18.3}
    ranks = (
        rank_record(0, waiting=Waiting((library, site, top), "barrier", site), **stopped),
        rank_record(1, waiting=Waiting((destroy, other, top), "destroy_process_group", other), **stopped),
    )
    return attempt(
        task=task(),
        submission=submission(text, "rank0_barrier"),
        grade=grade(
            Verdict.DEADLOCKED,
            submission="rank0_barrier",
            verdict_reason="After training, the ranks waited for each other and nothing moved any more for 15 seconds.",
            points=30.0,
            findings=(stuck,),
            rubric=_unreached(rubric({"runs": ("DIST009",)}), "accuracy", "time"),
            metrics={
                "accuracy": None,
                "accuracy_target": 0.9,
                "cpu_s": 3.4,
                "time_s": None,
                "time_target_s": 4.29,
                "wall_s": 18.3,
            },
            diagnosis=Diagnosis(
                id="guarded_collective",
                title="Rank 0 called a collective that the others never reach",
                explanation="Rank 0 waited in `barrier` at `train.py:39`, "
                "under `if rank == 0:` in line 38; rank 1 "
                "waited in `destroy_process_group` at `train.py:41` until it was stopped. A collective ends only when "
                "every rank has called it, and the test keeps the other ranks from this one.",
                hint="Move the call out of the test, so that all ranks make it.",
                where=(Location("train.py", 39), Location("train.py", 41)),
                ranks=(0,),
                details={"ranks": {"0": "waited in `barrier`", "1": "waited in `destroy_process_group`"}},
            ),
        ),
        record=run_record(*ranks, ending=Ending.DEADLOCKED, reason="Both ranks waited in collectives."),
        trace=trace(),
        evaluation=Evaluation(
            ArtifactProblem.MISSING, "The output folder holds no model.pt and no model.safetensors."
        ),
        logs=LOGS,
        coverage=shards(overlap=False),
    )


def crashed() -> Attempt:
    frames = (
        Frame("/opt/python/torch/nn/modules/linear.py", 125, "forward", in_submission=False),
        Frame("train.py", 32, "main", in_submission=True),
        Frame("train.py", 43, "<module>", in_submission=True),
    )
    message = "mat1 and mat2 shapes cannot be multiplied (64x784 and 785x128)"
    trouble = 'Traceback (most recent call last):\n  File "train.py", line 43, in <module>\n    main()\n'
    ranks = (
        rank_record(
            0, exit_code=1, ended_s=1.9, stdout_lines=0, failure=Failure("RuntimeError", message, frames)
        ),
        rank_record(1, exit_code=None, killed_by_judge=True, ended_s=2.4, stdout_lines=0),
    )
    return attempt(
        task=task(),
        submission=submission(SOURCE.replace("784, 128", "785, 128"), "wrong_shape"),
        grade=grade(
            Verdict.CRASHED,
            submission="wrong_shape",
            verdict_reason="Rank 0 ended with a RuntimeError at train.py:32 before the first step.",
            points=0.0,
            rubric=rubric({item.id: () for item in task().rubric}, "The script did not get that far."),
            checks=(),
            metrics={"wall_s": 2.4},
            diagnosis=Diagnosis(
                id="exception",
                title="Rank 0 raised RuntimeError; the others needed it",
                explanation=f"Rank 0 raised RuntimeError (“{message}”) at `train.py:32`; rank 1 was stopped. A step of "
                "the wrapped model and every collective need all ranks, so the error of one ends the run for all.",
                hint="Mend this line first, and ask what was different there.",
                where=(Location("train.py", 32),),
                ranks=(0,),
                details={"exception": "RuntimeError", "message": message, "exit_code": 1},
            ),
        ),
        record=run_record(*ranks, ending=Ending.CRASHED, reason="Rank 0 crashed."),
        trace=Trace((RankTrace(0, None, False), RankTrace(1, None, False))),
        evaluation=Evaluation(ArtifactProblem.MISSING, "The output folder holds no weights."),
        logs=(("", trouble + f"RuntimeError: {message}\n"), ("", "")),
    )


def does_not_parse() -> Attempt:
    text = SOURCE.replace("for epoch in range(EPOCHS):", "for epoch in range(EPOCHS)")
    finding = Finding(
        "DIST000",
        Severity.ERROR,
        EvidenceKind.SOURCE,
        "Python cannot read this file: expected ':' at line 30, column 31. Nothing was run.",
        "Put a colon at the end of the line.",
        where=(Location("train.py", 30, 31),),
    )
    return attempt(
        task=task(),
        submission=submission(text, "no_colon"),
        grade=grade(
            Verdict.CRASHED,
            submission="no_colon",
            verdict_reason="The script does not parse, so nothing was run.",
            points=0.0,
            findings=(finding,),
            rubric=rubric({item.id: () for item in task().rubric}, "The script did not get that far."),
            checks=(),
            metrics={},
            phases={},
        ),
    )


HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "\x1b[2J\x1b]0;owned\x07 \x00 \u202egnp.exe\u202c \ud800 {{ 7*7 }} </title></style>'\"&\x9b31m"
)


def hostile() -> Attempt:
    """Every string that a learner controls tries to escape: source, logs, exception, file names, details."""
    finding = replace(
        DATA001,
        message=f"Seen: {HOSTILE}",
        hint=f"`{HOSTILE}` [click](javascript:alert(1)) **{HOSTILE}**",
        where=(Location("train.py", 1), Location(f"{HOSTILE}.py", 3)),
        details={HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
        refuted=HOSTILE,
    )
    frame = Frame(f"{HOSTILE}.py", 1, HOSTILE, in_submission=True)
    ranks = (
        rank_record(0, exit_code=1, failure=Failure(HOSTILE, HOSTILE, (frame,))),
        rank_record(1, exit_code=-11, waiting=Waiting((frame,), HOSTILE, frame)),
    )
    base = rejected()
    text = f"# {HOSTILE}\nx = '''{HOSTILE}'''\n" * 3
    return attempt(
        task=base.task,
        submission=Submission(HOSTILE, (SourceFile("train.py", text),)),
        grade=replace(
            base.grade,
            submission=HOSTILE,
            verdict_reason=HOSTILE,
            findings=(finding,),
            checks=(CheckResult("DATA002", State.VERIFIED, (), HOSTILE),),
            rubric=tuple(replace(item, reason=HOSTILE) for item in base.grade.rubric),
            environment={HOSTILE: HOSTILE},
            notes=(HOSTILE,),
        ),
        record=replace(run_record(*ranks), outputs=(WrittenFile(HOSTILE, 1, 0.1),), ending_reason=HOSTILE),
        trace=base.trace,
        evaluation=base.evaluation,
        calibration=base.calibration,
        logs=((HOSTILE * 3, HOSTILE), (f"\n{HOSTILE}\n", "")),
        coverage=base.coverage,
    )


PAGES = {
    "DATA001": """Every rank trains on the whole data set.

**What it finds.** Every rank trains on the whole data set.

*Why it matters*

With `k` ranks, k processes do the same work, and an epoch costs as much as on one.

*Use instead*

    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=64, sampler=sampler)

- `sampler.set_epoch(epoch)` reshuffles
- see [the documentation](https://pytorch.org/docs/stable/data.html)
""",
    "IO002": "Every rank prints the same line.\n\n## What it finds\n\nEvery rank prints the same line.\n",
    "DIST009": "The ranks wait in different collectives.\n\nWhat it finds\n-------------\nThey wait.\n",
}
