"""The real scorer on real files: honest weights are scored once each, hostile ones cost nothing but a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.errors import InfraError, TaskError
from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.measurement_files import read_stored
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.task import Task
from grader.run.workspace import Workspace
from tests.evaluate.tiny import EVALUATE, NUM_HIDDEN, NUM_VALIDATION, make_task


def perfect_state() -> dict[str, torch.Tensor]:
    """Weights that read the label off the first row of pixels."""
    weight = torch.zeros(10, 784)
    weight[torch.arange(10), torch.arange(10)] = 1.0
    return OrderedDict(
        {
            "1.weight": weight,
            "1.bias": torch.zeros(10),
            "2.weight": torch.ones(10),
            "2.bias": torch.zeros(10),
            "2.running_mean": torch.zeros(10),
            "2.running_var": torch.ones(10),
            "2.num_batches_tracked": torch.tensor(7),
        }
    )


@pytest.fixture
def judge(evaluator: Evaluator, tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset) -> Any:
    """Scores what lies in the workspace's output folder."""
    return lambda: evaluator.evaluate(tiny_task, workspace, noise_data)


def test_modules_beside_evaluate_py_are_its_own_and_read_anew(
    evaluator: Evaluator, workspace: Workspace, noise_data: PreparedDataset, tmp_path: Path
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    text = EVALUATE.replace("import torch\n", "import torch\nfrom worth import FACTOR\n", 1)
    text = text.replace(
        "    return {", "    from worth import FACTOR as again\n    assert again == FACTOR\n    return {", 1
    )
    text = text.replace('.item(), "loss"', '.item() * FACTOR, "loss"')
    found = []
    for name, factor, version in (("one", 1.0, "1"), ("two", 0.5, "1"), ("two", 0.25, "2")):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "evaluate.py").write_text(text)
        (folder / "worth.py").write_text(f"FACTOR = {factor}\n")
        task = replace(make_task(folder), version=version)
        found.append(evaluator.evaluate(task, workspace, noise_data).hidden["accuracy"])
    assert found == [1.0, 0.5, 0.25]


def refused(found: Evaluation, *words: str) -> None:
    assert found.problem is ArtifactProblem.REFUSED, found
    assert found.hidden == {}
    for word in words:
        assert word in found.detail


def test_every_sample_is_scored_and_the_result_is_stored(judge: Any, workspace: Workspace) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    found = judge()
    assert found.problem is None
    assert (found.num_hidden, found.num_validation) == (NUM_HIDDEN, NUM_VALIDATION)
    assert found.hidden["accuracy"] == 1.0
    assert found.validation["accuracy"] == 1.0
    assert found.hidden["loss"] != found.validation["loss"]
    assert (found.artifact, found.prefix) == ("model.pt", "")
    assert found.artifact_bytes == (workspace.outputs / "model.pt").stat().st_size
    # Floats by sorted name: 1.bias, 1.weight, 2.bias, 2.running_mean, 2.running_var, 2.weight.
    assert found.sums == (0.0, 10.0, 0.0, 0.0, 10.0, 10.0)
    assert read_stored(workspace.evaluation, Evaluation) == found


def test_untrained_weights_and_a_perfect_report_earn_the_untrained_score(
    judge: Any, workspace: Workspace
) -> None:
    state = perfect_state()
    state["1.weight"] = torch.zeros(10, 784)
    torch.save(state, workspace.outputs / "model.pt")
    (workspace.outputs / "metrics.json").write_text('{"schema": 1, "epochs": [{"val_accuracy": 1.0}]}')
    found = judge()
    assert found.hidden["accuracy"] < 0.4
    assert found.reported is not None
    assert found.reported.epochs == ({"val_accuracy": 1.0},)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_a_wrappers_prefix_is_taken_off(judge: Any, workspace: Workspace, prefix: str) -> None:
    torch.save({prefix + k: v for k, v in perfect_state().items()}, workspace.outputs / "model.pt")
    found = judge()
    assert (found.problem, found.prefix, found.hidden["accuracy"]) == (None, prefix, 1.0)


def test_safetensors_and_half_precision(judge: Any, workspace: Workspace) -> None:
    from safetensors.torch import save_file

    half = {k: v.half() if v.is_floating_point() else v for k, v in perfect_state().items()}
    save_file(half, workspace.outputs / "model.safetensors")
    found = judge()
    assert (found.problem, found.artifact, found.hidden["accuracy"]) == (None, "model.safetensors", 1.0)


def test_nothing_left_behind_names_what_there_is(judge: Any, workspace: Workspace) -> None:
    torch.save(perfect_state(), workspace.outputs / "checkpoint_final.pth")
    found = judge()
    assert found.problem is ArtifactProblem.MISSING
    assert "checkpoint_final.pth" in found.detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: {"epoch": 3, "model_state_dict": s}, ["`epoch`, `model_state_dict`", "state dict itself"]),
        (
            lambda s: {k: v for k, v in s.items() if k != "1.bias"},
            ["1 of 7 names are missing, such as `1.bias`"],
        ),
        (lambda s: {**s, "3.weight": torch.ones(2)}, ["not the network's, such as `3.weight`"]),
        (lambda s: {**s, "1.bias": torch.zeros(11)}, ["`1.bias` has shape (11,), the network's has (10,)"]),
        (lambda s: {**s, "1.bias": torch.zeros(10, dtype=torch.int64)}, ["`1.bias` is torch.int64"]),
        (lambda s: torch.ones(3), ["holds a Tensor, not a state dict"]),
        (lambda s: {}, ["7 of 7 names are missing"]),
    ],
)
def test_other_contents_are_explained(
    judge: Any, workspace: Workspace, change: Any, words: list[str]
) -> None:
    torch.save(change(perfect_state()), workspace.outputs / "model.pt")
    found = judge()
    assert found.problem is ArtifactProblem.MISMATCH
    for word in words:
        assert word in found.detail


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(judge: Any, workspace: Workspace, value: float) -> None:
    state = perfect_state()
    state["2.bias"][3] = value
    torch.save(state, workspace.outputs / "model.pt")
    found = judge()
    assert found.problem is ArtifactProblem.NOT_FINITE
    assert "`2.bias`: the training diverged" in found.detail


def test_weights_that_overflow_keep_a_finite_report(judge: Any, workspace: Workspace) -> None:
    state = perfect_state()
    state["1.weight"] = torch.full((10, 784), 3e38)
    torch.save(state, workspace.outputs / "model.pt")
    found = judge()
    assert found.problem is None
    assert "loss" not in found.hidden
    json.loads(workspace.evaluation.read_text(), parse_constant=pytest.fail)


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)


def test_nothing_in_a_file_is_executed(judge: Any, workspace: Workspace, tmp_path: Path) -> None:
    for content in ({**perfect_state(), "x": Bomb(tmp_path / "owned")}, Bomb(tmp_path / "owned")):
        torch.save(content, workspace.outputs / "model.pt")
        refused(judge(), "Python objects besides tensors", "system")
    (workspace.outputs / "model.pt").write_bytes(pickle.dumps(Bomb(tmp_path / "owned")))
    refused(judge(), "not written by `torch.save`")
    torch.save(Bomb(tmp_path / "owned"), workspace.outputs / "model.pt", _use_new_zipfile_serialization=False)
    refused(judge(), "not written by `torch.save`")
    assert not (tmp_path / "owned").exists()


def test_a_saved_model_is_told_how_to_be_saved(judge: Any, workspace: Workspace) -> None:
    torch.save(torch.nn.Sequential(torch.nn.Linear(784, 10)), workspace.outputs / "model.pt")
    refused(judge(), "Sequential", "Save the state dict, not the model")


def test_links_pipes_and_folders_are_not_opened(
    judge: Any, workspace: Workspace, tmp_path: Path, noise_data: PreparedDataset
) -> None:
    path = workspace.outputs / "model.pt"
    torch.save(perfect_state(), tmp_path / "elsewhere.pt")
    path.symlink_to(tmp_path / "elsewhere.pt")
    refused(judge(), "not a plain file")
    path.unlink()
    os.link(tmp_path / "elsewhere.pt", path)
    refused(judge(), "hard link")
    path.unlink()
    os.mkfifo(path)
    refused(judge(), "not a plain file")
    path.unlink()
    path.mkdir()
    refused(judge(), "not a plain file")
    # The whole output folder may be a link, too.
    path.rmdir()
    workspace.outputs.rmdir()
    workspace.outputs.symlink_to(tmp_path)
    assert judge().problem is ArtifactProblem.MISSING


def test_half_written_files(judge: Any, workspace: Workspace) -> None:
    buffer = io.BytesIO()
    torch.save(perfect_state(), buffer)
    path = workspace.outputs / "model.pt"
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    refused(judge(), "cut short")
    path.write_bytes(b"")
    refused(judge(), "model.pt is empty")


def test_files_larger_than_any_honest_one(judge: Any, workspace: Workspace) -> None:
    with (workspace.outputs / "model.pt").open("wb") as file:
        file.truncate(1 << 40)
    refused(judge(), "1,099,511,627,776 bytes")


def test_zip_bombs(judge: Any, workspace: Workspace) -> None:
    path = workspace.outputs / "model.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        with archive.open("archive/data/0", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(bytes(1 << 20))
    refused(judge(), "compressed archive")
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(20_001):
            archive.writestr(f"archive/data/{n}", b"")
    refused(judge(), "members")
    torch.save(perfect_state(), path)
    content = path.read_bytes()
    # Claim four gibibytes for the first member, in its central directory entry.
    entry = content.index(b"PK\x01\x02")
    path.write_bytes(content[: entry + 24] + struct.pack("<I", 0xFFFFFFF0) + content[entry + 28 :])
    refused(judge())


def test_a_safetensors_header_that_lies(judge: Any, workspace: Workspace) -> None:
    path = workspace.outputs / "model.safetensors"
    for content in (b"", b"\x08", struct.pack("<Q", 1 << 62) + b"{}", struct.pack("<Q", 2) + b"[]"):
        path.write_bytes(content)
        refused(judge(), "damaged")
    header = b'{"1.weight":{"dtype":"F32","shape":[1000000000,1000],"data_offsets":[0,4000000000000]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))
    refused(judge(), "damaged")


def test_a_storage_that_claims_a_terabyte_costs_only_a_child(judge: Any, workspace: Workspace) -> None:
    huge = torch.zeros(1).expand(1 << 40)
    torch.save({**perfect_state(), "1.weight": huge}, workspace.outputs / "model.pt")
    assert judge().problem is ArtifactProblem.REFUSED
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    assert judge().problem is None


def test_metrics_that_are_no_plain_file_do_not_stop_the_score(judge: Any, workspace: Workspace) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    os.mkfifo(workspace.outputs / "metrics.json")
    found = judge()
    assert (found.hidden["accuracy"], found.reported) == (1.0, None)
    assert "not a plain file" in found.reported_problem


def broken_task(folder: Path, text: str) -> Task:
    folder.mkdir(parents=True)
    (folder / "evaluate.py").write_text(text)
    return make_task(folder)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("import torch\n", "import tosch\n", "importing it failed at evaluate.py:1"),
        (
            "    return nn.Sequential",
            "    return missing.Sequential",
            "`build_model()` failed at evaluate.py:",
        ),
        ("    assert not model.training", "    raise SystemExit(0)", "`evaluate()` failed at evaluate.py:"),
        (
            '    return {"accuracy"',
            '    return {"acuracy"',
            "returns nothing under 'accuracy', which task.toml names",
        ),
    ],
)
def test_an_authors_mistake_is_the_authors(
    evaluator: Evaluator,
    workspace: Workspace,
    noise_data: PreparedDataset,
    tmp_path: Path,
    old: str,
    new: str,
    words: str,
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    task = broken_task(tmp_path / "task", EVALUATE.replace(old, new))
    with pytest.raises(TaskError, match=r"evaluate\.py needs mending") as caught:
        evaluator.evaluate(task, workspace, noise_data)
    assert words in str(caught.value)


def test_the_network_is_built_in_the_size_that_was_trained(
    evaluator: Evaluator, workspace: Workspace, noise_data: PreparedDataset, tmp_path: Path
) -> None:
    text = EVALUATE.replace("build_model():", "build_model(size='small'):")
    text = text.replace("nn.Linear(784, 10)", "nn.Linear(784, 10, bias=size == 'large')")
    task = broken_task(tmp_path / "task", text)
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    large = evaluator.evaluate(task, workspace, noise_data, model_size="large")
    assert (large.problem, large.hidden["accuracy"]) == (None, 1.0)
    small = evaluator.evaluate(task, workspace, noise_data)
    assert small.problem is ArtifactProblem.MISMATCH
    with pytest.raises(TaskError, match=r"`build_model\(\)` failed"):
        evaluator.evaluate(
            broken_task(tmp_path / "other", EVALUATE), workspace, noise_data, model_size="large"
        )


def test_an_evaluate_that_never_ends_is_not_the_learners_fault(
    workspace: Workspace, noise_data: PreparedDataset, tmp_path: Path
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    text = EVALUATE.replace("    assert not model.training", "    import time; time.sleep(600)")
    with Evaluator(wall_s=1) as scorer:
        scorer.warm()
        with pytest.raises(InfraError, match="took too long"):
            scorer.evaluate(broken_task(tmp_path / "task", text), workspace, noise_data)
        assert children_of(os.getpid())
    assert not workspace.evaluation.exists()


def test_missing_data_is_our_fault(
    evaluator: Evaluator, tiny_task: Task, workspace: Workspace, tmp_path: Path
) -> None:
    gone = PreparedDataset("noise", "2", tmp_path / "visible", tmp_path / "hidden", 0, 0, 0)
    with pytest.raises(InfraError, match="t10k"):
        evaluator.evaluate(tiny_task, workspace, gone)


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def test_leaving_ends_the_scorer_whatever_it_was_doing() -> None:
    before = set(children_of(os.getpid()))
    with Evaluator():
        started = set(children_of(os.getpid())) - before
        assert len(started) == 1
    assert set(children_of(os.getpid())) == before


def test_a_scorer_that_was_killed_while_idle_is_replaced(
    tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    before = set(children_of(os.getpid()))
    with Evaluator() as evaluator:
        (scorer,) = set(children_of(os.getpid())) - before
        os.kill(scorer, signal.SIGKILL)
        os.waitid(os.P_PID, scorer, os.WEXITED | os.WNOWAIT)
        found = evaluator.evaluate(tiny_task, workspace, noise_data)
        assert found.hidden["accuracy"] == 1.0
        assert scorer not in set(children_of(os.getpid()))
    assert set(children_of(os.getpid())) == before


def test_the_scorer_ends_with_its_parent() -> None:
    code = (
        "import time; from grader.evaluate.scorer.local_scorer import LocalScorer\n"
        "scorer = LocalScorer()\n"
        "scorer.start(); scorer.wait_ready(); print(scorer.pid, flush=True); time.sleep(600)\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    scorer = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while _alive(scorer) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(scorer)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_scorer_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InfraError, match="could not be started"), Evaluator():
        pass
