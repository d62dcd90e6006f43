"""Submissions of the tasks, judged under NCCL with two ranks on one GPU: what the judge makes of a run on devices."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from grader.catalog.submissions.submission_selection import load_selected
from grader.evaluate.points import score
from grader.model.run_options import Options, Setting
from grader.promises.verification import Verification, verify
from grader.run import fork_server_client
from grader.settings import settings

OF_ONE_GPU = [sys.executable, "-u", "-m", "tests.gpu.hosts_of_one_gpu"]
# By the flaw that each shows; what hangs on several GPUs of one host can't show here.
SHOWN = (
    "ddp-fashion/accepted/distributed_sampler",
    "ddp-fashion/accepted/own_average",
    "ddp-fashion/accepted/rank_zero_evaluates",
    "ddp-fashion/accepted/validation_images_in_batches",
    "ddp-fashion/rejected/gradients_of_rank_0",
    "ddp-fashion/rejected/never_wrapped",
    "ddp-fashion/rejected/no_distributed_sampler",
    "ddp-fashion/rejected/no_set_epoch",
    "ddp-toy/deadlocked/collective_on_rank_zero",
    "ddp-toy/deadlocked/uneven_steps",
    "ddp-toy/rejected/bypasses_wrapper",
    "ddp-toy/rejected/every_rank_saves",
)


@pytest.fixture
def one_gpu_for_all(state: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None, None, None]:
    """Ranks share this GPU, and nobody minds that it is not one for each."""
    monkeypatch.setenv("GRADER_STATE_DIR", str(state))
    monkeypatch.setattr(fork_server_client, "COMMAND", OF_ONE_GPU)
    monkeypatch.setattr(Setting, "gpus_per_node", 0)
    monkeypatch.setattr(score, "_without_gpus", lambda _task, _run: "")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.usefixtures("one_gpu_for_all")
def test_promises_hold_under_nccl(name: str, recordings: Path) -> None:
    task, _, place = name.partition("/")
    todo = [one for one in load_selected((task,)) if one[1].name == place]
    options = Options(profile="gpu", nproc_per_node=2, dataset="digits", timed=False)
    how = Verification(options, "process", folder=recordings)
    (case,) = verify(todo, how, lambda _sign: None, lambda _case: None)
    assert case.message == ""
