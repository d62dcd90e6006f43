"""Files with tensors of every kind that torch can save: what is odd about them is told, and nobody else is to blame."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._utils import _rebuild_tensor_v2, _rebuild_wrapper_subclass

from grader.errors import TaskError
from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.plain_tensors import KINDS
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.run import Ending, RankRecord, RunRecord
from grader.model.task import Artifact, RubricItem, Task
from grader.run.workspace import Workspace
from tests.evaluate.test_evaluator import perfect_state
from tests.evaluate.tiny import EVALUATE, make_task

Judge = Callable[[], Evaluation]
ODD_KINDS = sorted(
    {str(one).removeprefix("torch.") for one in vars(torch).values() if isinstance(one, torch.dtype)}
    - {*KINDS}
)


@pytest.fixture
def judge(evaluator: Evaluator, tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset) -> Judge:
    """Scores what lies in the workspace's output folder."""
    return lambda: evaluator.evaluate(tiny_task, workspace, noise_data)


def of_kind(kind: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Ten numbers of a kind as torch lets them be made, and one without dimensions."""
    dtype = getattr(torch, kind)
    if kind in {"qint8", "quint8", "qint32"}:
        yield "1.bias", torch.quantize_per_tensor(torch.zeros(10), 1.0, 0, dtype)
        return
    for name, shape in (("1.bias", (10,)), ("2.num_batches_tracked", ())):
        yield name, torch.empty(shape, dtype=dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD_KINDS)
def test_a_tensor_of_an_unread_kind_is_refused_by_name(judge: Judge, workspace: Workspace, kind: str) -> None:
    try:
        made = list(of_kind(kind))
    except (RuntimeError, NotImplementedError):
        pytest.skip(f"this torch makes no tensor of {kind}")
    for name, tensor in made:
        try:
            torch.save({**perfect_state(), name: tensor}, workspace.outputs / "model.pt")
        except (RuntimeError, KeyError, NotImplementedError, TypeError):
            continue
        found = judge()
        assert (found.problem, found.hidden) == (ArtifactProblem.REFUSED, {}), found
        assert f"`{name}`" in found.detail or "cannot be read by torch.load" in found.detail
        if f"`{name}`" in found.detail:
            assert kind in found.detail


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_never_fails_behind_the_door(judge: Judge, workspace: Workspace, kind: str) -> None:
    dtype = getattr(torch, kind)
    name = "1.bias" if dtype.is_floating_point else "2.num_batches_tracked"
    state = perfect_state()
    torch.save({**state, name: state[name].to(dtype)}, workspace.outputs / "model.pt")
    found = judge()
    assert (found.problem, found.hidden["accuracy"]) == (None, 1.0)


class Rebuilt:
    """Is pickled as a call of one of the functions that torch.load allows."""

    def __init__(self, function: Any, *given: Any) -> None:
        self.called = (function, given)

    def __reduce__(self) -> Any:
        return self.called


def storage(number: int) -> Any:
    return torch.zeros(number)._typed_storage()


@pytest.mark.filterwarnings("ignore")  # torch warns of its own prototypes
@pytest.mark.parametrize(
    "odd",
    [
        lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(7)]),
        lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(7)], layout=torch.jagged),
        lambda: torch.zeros(10).to_sparse(),
        lambda: torch.zeros(2, 5).to_sparse_csr(),
        lambda: torch.sparse_coo_tensor(torch.tensor([[10**9]]), torch.ones(1), (10**10,), check_invariants=False),
        lambda: torch.zeros(10, device="meta"),
        lambda: torch.zeros(10, dtype=torch.complex64),
        lambda: torch.zeros(()).expand(1 << 40),
        lambda: Rebuilt(
            _rebuild_wrapper_subclass, torch.Tensor, torch.float32, (1 << 40,), (1,), 0, torch.strided,
            torch.device("cpu"), False,
        ),
        lambda: Rebuilt(_rebuild_tensor_v2, storage(10), 1 << 40, (10,), (1,), False, {}),
        lambda: Rebuilt(_rebuild_tensor_v2, storage(10), -5_000_000, (10,), (1,), False, {}),
        lambda: Rebuilt(_rebuild_tensor_v2, storage(10), 0, (10,), (-1,), False, {}),
    ],
)  # fmt: skip
def test_a_tensor_that_is_not_simply_there_is_refused(judge: Judge, workspace: Workspace, odd: Any) -> None:
    torch.save({**perfect_state(), "1.bias": odd()}, workspace.outputs / "model.pt")
    found = judge()
    assert (found.problem, found.hidden) == (ArtifactProblem.REFUSED, {}), found
    assert found.detail.startswith("model.pt ")


def test_views_of_the_right_shape_are_weights_like_others(judge: Judge, workspace: Workspace) -> None:
    state = perfect_state()
    torch.save({**state, "1.weight": state["1.weight"].T.contiguous().T, "1.bias": torch.zeros(()).expand(10)},
               workspace.outputs / "model.pt")  # fmt: skip
    found = judge()
    assert (found.problem, found.hidden["accuracy"]) == (None, 1.0)


@pytest.mark.parametrize(
    "key",
    ["module." * 1_000_000 + "1.bias", 1 << 20_000, ("a",) * 100_000, b"1.bias"],
    ids=["prefixes", "digits", "tuple", "bytes"],
)
def test_a_name_that_is_none_keeps_nobody_busy(judge: Judge, workspace: Workspace, key: Any) -> None:
    torch.save({key: torch.zeros(10)}, workspace.outputs / "model.pt")
    started = time.monotonic()
    found = judge()
    assert found.problem in {ArtifactProblem.REFUSED, ArtifactProblem.MISMATCH}
    assert time.monotonic() - started < 5
    assert len(found.detail) < 600


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": 1, ' + b", ".join(b'"%d": 0' % i for i in range(80_000)) + b', "7": 1}', "'7' twice"),
        (b'{"schema": 1, "' + b'\\"' * 500_000, "is not JSON"),
    ],
)
def test_a_report_of_a_megabyte_is_refused_at_once(
    judge: Judge, workspace: Workspace, content: bytes, said: str
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    (workspace.outputs / "metrics.json").write_bytes(content)
    started = time.monotonic()
    assert said in judge().reported_problem
    assert time.monotonic() - started < 10


PICKY = (
    EVALUATE
    + """

def evaluate_all(model, images):
    with torch.no_grad():
        return model(images.float().unsqueeze(1) / 255)


def evaluate(model, images, labels):
    logits = evaluate_all(model, images)
    if not logits.isfinite().all():
        raise ValueError("logits that are no numbers")
    return {"accuracy": (logits.argmax(1) == labels).double().mean().item()}
"""
)


def test_weights_that_no_evaluation_survives_are_the_runs_own(
    evaluator: Evaluator, tmp_path: Path, workspace: Workspace, noise_data: PreparedDataset
) -> None:
    """Finite weights whose products are not: the task's author expected numbers, and gets them from any other run."""
    (tmp_path / "evaluate.py").write_text(PICKY)
    torch.save({**perfect_state(), "1.weight": torch.full((10, 784), 3e38)}, workspace.outputs / "model.pt")
    found = evaluator.evaluate(make_task(tmp_path), workspace, noise_data)
    assert (found.problem, found.hidden) == (ArtifactProblem.REFUSED, {})
    assert "with these weights the task's `evaluate()` failed" in found.detail
    assert "logits that are no numbers" in found.detail


def test_an_evaluation_that_fails_on_any_network_is_its_authors_fault(
    evaluator: Evaluator, tmp_path: Path, workspace: Workspace, noise_data: PreparedDataset
) -> None:
    (tmp_path / "evaluate.py").write_text(EVALUATE + "\n\ndef evaluate(*given):\n    return given[3]\n")
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    with pytest.raises(TaskError, match="IndexError"):
        evaluator.evaluate(make_task(tmp_path), workspace, noise_data)


EXAMINE = """
def examine(left, run):
    if "gradient.pt" not in left:
        return {}
    return {"total": (float(left["gradient.pt"]["w"].sum().item() == 6), "The sum is told.", "gradient.pt")}
"""


@pytest.mark.parametrize(
    ("tensors", "share", "words"),
    [
        ({"w": torch.tensor([1.0, 2.0, 3.0])}, 1.0, "The sum is told."),
        ({"w": torch.empty(3, dtype=torch.bits8)}, None, "`w` as bits8"),
        ({"v": torch.ones(3)}, None, "`examine()` failed at evaluate.py:"),
    ],
)
def test_what_examinations_are_given_is_plain_and_what_fails_them_is_looked_at(
    evaluator: Evaluator,
    tmp_path: Path,
    workspace: Workspace,
    noise_data: PreparedDataset,
    tensors: dict[str, torch.Tensor],
    share: float | None,
    words: str,
) -> None:
    (tmp_path / "evaluate.py").write_text(EXAMINE)
    question = RubricItem("total", "The sum is right", 100, True, (), None, (), "total")
    artifacts = (Artifact("gradient.pt", ()),)
    task = replace(make_task(tmp_path, (question,)), artifacts=artifacts, scored=False)
    ranks = (RankRecord(0, 0, False, 0.0, 1.0, 0.5, 0.0, 1, 0, 0, 0, False, 10, False),)
    record = RunRecord("process", "fork", False, 1, Ending.COMPLETED, "", 2.0, 60.0, ranks, ())
    workspace.record.parent.mkdir(parents=True, exist_ok=True)
    workspace.record.write_text(json.dumps(asdict(record)))
    torch.save(tensors, workspace.outputs / "gradient.pt")
    found = evaluator.evaluate(task, workspace, noise_data)
    answer = found.answers.get("total")
    assert words in (
        answer.said if answer is not None else found.unread.get("gradient.pt") or found.unexamined
    )
    assert (answer.share if answer is not None else None) == share
