"""Files besides weights: read strictly, asked about by the task, and blamed on whoever is at fault."""

from __future__ import annotations

import collections
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from grader.errors import TaskError
from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.measurement_files import read_stored
from grader.json_reader import read_value
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Answer, Evaluation
from grader.model.run import Ending, RankRecord, RunRecord
from grader.model.task import Artifact, Task
from grader.run.workspace import Workspace
from tests.evaluate.tiny import make_task

EXAMINE = """\
def examine(left, run):
    answers = {}
    if "table.csv" in left:
        total = sum(row["samples"] for row in left["table.csv"])
        words = " ".join(sorted({row["method"] for row in left["table.csv"]}))
        answers["total"] = (1.0 if total == 30 else 0.5, f"{total} samples by {words}.", "table.csv")
    if "gradient.pt" in left:
        answers["gradient"] = (None, f"{sorted(left['gradient.pt'])} of {run['world_size']:.0f} ranks.")
    return answers
"""
COLUMNS = (("samples", "count"), ("loss", "number"), ("method", "text"))
TABLE = "samples, loss, method, more\n10, 0.5, sgd, x\n20, 2.5e-1, adam, y\n"
Ask = collections.abc.Callable[..., Evaluation]


def task_of(folder: Path, source: str, table: str = "table.csv") -> Task:
    folder.mkdir(exist_ok=True)
    (folder / "evaluate.py").write_text(source)
    artifacts = (Artifact(table, COLUMNS), Artifact("gradient.pt"))
    return replace(make_task(folder), scored=False, targets=(), artifacts=artifacts)


@pytest.fixture
def ask(
    evaluator: Evaluator, tmp_path: Path, workspace: Workspace, noise_data: PreparedDataset
) -> collections.abc.Callable[..., Evaluation]:
    """Have the scorer look at what lies in the output folder now; two ranks are said to have left it."""
    ranks = tuple(RankRecord(r, 0, False, 0.0, 1.0, 0.5, 0.0, 1, 0, 0, 0, False, 10, False) for r in (0, 1))
    record = RunRecord("process", "fork", False, 2, Ending.COMPLETED, "", 2.0, 60.0, ranks, ())
    workspace.record.parent.mkdir(parents=True, exist_ok=True)
    workspace.record.write_text(json.dumps(asdict(record)))

    def look(source: str = EXAMINE, table: str = "table.csv") -> Evaluation:
        return evaluator.evaluate(task_of(tmp_path / "task", source, table), workspace, noise_data)

    return look


def test_what_is_there_is_handed_on_in_the_types_that_the_task_names(ask: Ask, workspace: Workspace) -> None:
    (workspace.outputs / "table.csv").write_text(TABLE)
    torch.save({"w": torch.ones(2), "b": torch.ones(1)}, workspace.outputs / "gradient.pt")
    found = ask()
    assert found.unread == {}
    assert found.answers == {
        "total": Answer(1.0, "30 samples by adam sgd.", "table.csv"),
        "gradient": Answer(None, "['b', 'w'] of 2 ranks."),
    }
    assert read_stored(workspace.evaluation, Evaluation) == found


def test_a_table_may_be_json(ask: Ask, workspace: Workspace) -> None:
    rows = [{"samples": 10, "loss": 0.5, "method": "sgd"}, {"samples": 25.0, "loss": 1, "method": "sgd"}]
    (workspace.outputs / "table.json").write_text(json.dumps(rows))
    found = ask(EXAMINE.replace("table.csv", "table.json"), "table.json")
    assert found.answers["total"] == Answer(0.5, "35 samples by sgd.", "table.json")
    assert list(found.unread) == ["gradient.pt"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "left no table.csv"),
        ("samples,loss,method\n", "holds no rows"),
        ("samples,method\n1,a\n", "row 1: there is no `loss`; its columns are `samples`, `method`"),
        ("samples,loss,method\n1,0.5,a\n2,nan,a\n", "row 2, loss: nan is not finite; the training may have"),
        ("samples,loss,method\n1,much,a\n", "row 1, loss: much is no number"),
        ("samples,loss,method\n1,,a\n", "row 1, loss: nothing is no number"),
        ("samples,loss,method\n1.5,1,a\n", "row 1, samples: 1.5 is no whole number"),
        ("samples,loss,method\n-1,1,a\n", "row 1, samples: -1 is no whole number"),
        ("samples,loss,method\n1,1\n", "row 1: there is no `method`"),
        (f"samples,loss,method\n1,1,{'a' * 500}\n", "row 1, method:"),
        (b"samples,loss,method\n1,1,\xff\n", "is not UTF-8 text"),
        ("samples,loss,method\n" + "1,1,a\n" * 10_001, "10,001 rows; at most 10,000"),
        ("x" * (2 << 20), "at most 1,048,576 are read"),
    ],
)
def test_a_table_that_cannot_be_read_is_said_to_be_so(
    ask: Ask, workspace: Workspace, text: str | bytes | None, said: str
) -> None:
    if text is not None:
        content = text if isinstance(text, bytes) else text.encode()
        (workspace.outputs / "table.csv").write_bytes(content)
    found = ask()
    assert said in found.unread["table.csv"]
    assert found.answers == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"samples": 1}', "is no list of objects"),
        ('[{"samples": 1, "samples": 2, "loss": 1, "method": "a"}]', "has the key 'samples' twice"),
        ('[{"samples": 1, "loss": NaN, "method": "a"}]', "holds NaN"),
        ('[{"samples": true, "loss": 1, "method": "a"}]', "row 1, samples: True is no number"),
        ('[{"samples": 1, "loss": 1, "method": 3}]', "row 1, method: 3 is no short text"),
        ("[" * 100, "nested more than 16 deep"),
        ("[{]", "table.json is not JSON"),
    ],
)
def test_json_is_read_as_strictly(ask: Ask, workspace: Workspace, text: str, said: str) -> None:
    (workspace.outputs / "table.json").write_text(text)
    assert said in ask(EXAMINE, "table.json").unread["table.json"]


def test_a_link_to_another_file_is_not_followed(ask: Ask, workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.csv").write_text(TABLE)
    (workspace.outputs / "table.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert "not a plain file" in ask().unread["table.csv"]


def test_tensors_are_tensors_and_nothing_else(ask: Ask, workspace: Workspace) -> None:
    torch.save({"w": [1, 2]}, workspace.outputs / "gradient.pt")
    assert "`w` is no tensor" in ask().unread["gradient.pt"]
    (workspace.outputs / "gradient.pt").write_bytes(b"nothing")
    assert "was not written by `torch.save`" in ask().unread["gradient.pt"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def examine(left, run):\n    return {'total': (2.0, 'too good')}\n",
            "did not return answers such as",
        ),
        ("def examine(left, run):\n    return {'total': 0.5}\n", "did not return answers such as"),
        ("def examine(left, run):\n    return None\n", "did not return answers such as"),
        ("def examine(left, run):\n    return left['x']\n", "`examine()` failed at evaluate.py:2: KeyError"),
    ],
)
def test_an_examination_that_fails_is_its_authors_fault(ask: Ask, source: str, said: str) -> None:
    with pytest.raises(TaskError, match=r"evaluate\.py needs mending") as raised:
        ask(source)
    assert said in str(raised.value)


def test_evaluations_of_earlier_versions_are_still_read() -> None:
    stored = asdict(Evaluation(None, hidden={"accuracy": 0.5}))
    del stored["answers"], stored["unread"]
    assert read_value(Evaluation, stored).answers == {}


FAILS = {
    "reads what is not there": (
        "left['gradient.pt']['v']",
        "`examine()` failed at evaluate.py:2: KeyError: 'v'",
    ),
    "ends the process": ("exit(3)", "`examine()` failed at evaluate.py:2: SystemExit: 3"),
    "takes all memory": ("bytearray(1 << 44)", "`examine()` was given up: scoring took more memory"),
    "answers with no share": ("{'total': (float('nan'), 'What?')}", "did not return answers such as"),
}


@pytest.mark.parametrize("how", FAILS)
def test_an_examination_that_only_these_files_make_fail_is_nobodys_error_but_unexamined(
    ask: Ask, workspace: Workspace, how: str
) -> None:
    does, said = FAILS[how]
    torch.save({"w": torch.ones(2)}, workspace.outputs / "gradient.pt")
    found = ask(f"def examine(left, run):\n    return {does} if left else {{}}\n")
    assert said in found.unexamined
    assert found.answers == {}


def test_an_unguarded_examination_is_refused_before_anybody_hands_in(
    evaluator: Evaluator, tmp_path: Path, noise_data: PreparedDataset
) -> None:
    task = task_of(
        tmp_path / "task", "def examine(left, run):\n    return {'a': (1.0, str(left['table.csv']))}\n"
    )
    with pytest.raises(TaskError, match=r'evaluate\.py:2: KeyError: .*`if "table\.csv" in left:`'):
        evaluator.warm(task, noise_data)
