"""What `grader doctor --gpu` makes of what its jobs showed; the jobs themselves need GPUs."""

from __future__ import annotations

import json

import pytest

from grader import cli, errors
from grader.gpu_trials.trial import TRIALS, TrialOutcome, facts
from grader.model.run import Ending

ALL = next(trial for trial in TRIALS if trial.what == "all GPUs together")


def seen(*told: dict[str, object]) -> TrialOutcome:
    outputs = tuple(f"NCCL says something first\n{json.dumps(one)}\n" for one in told)
    return TrialOutcome(Ending.COMPLETED, "", ("GPU-a", "GPU-b"), outputs, ("", ""))


def rank(uuid: str, num_devices: int = 2, *, exact: bool = True) -> dict[str, object]:
    return {"uuid": uuid, "num_devices": num_devices, "exact": exact}


def test_ranks_that_have_the_gpus_of_their_lease_are_right() -> None:
    assert ALL.fault(seen(rank("GPU-a"), rank("GPU-b"))) == ""


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([rank("GPU-b"), rank("GPU-a")], "leased GPU-a, GPU-b"),
        ([rank("GPU-a")], "leased GPU-a, GPU-b"),
        ([rank("GPU-a", 8), rank("GPU-b", 8)], "a rank sees 8"),
        ([rank("GPU-a"), rank("GPU-b", exact=False)], "came out wrong"),
    ],
)
def test_other_gpus_more_of_them_or_a_wrong_sum_are_a_fault(
    ranks: list[dict[str, object]], words: str
) -> None:
    assert words in ALL.fault(seen(*ranks))


def test_what_is_no_json_of_a_rank_is_left_out() -> None:
    assert facts(["[1, 2]\n17\n{broken\n", '{"uuid": "GPU-a"}']) == [{"uuid": "GPU-a"}]


def test_every_script_is_there_and_compiles() -> None:
    for trial in TRIALS:
        compile(trial.text, trial.script, "exec")


def test_a_host_without_gpus_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Where there are some, they are left to others.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "none")
    assert cli.main(["doctor", "--gpu", "--json"]) == errors.EXIT_INFRA_ERROR
    told = json.loads(capsys.readouterr().out)
    assert told["no_gpus"] or all(gpu["unfit"] for gpu in told["gpus"])
    assert told["trials"] == []
    assert [one["ok"] for one in told["checks"]] == [False]


def test_a_runtime_for_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--runtime", "docker"]) == errors.EXIT_USAGE
    assert "--gpu" in capsys.readouterr().err
