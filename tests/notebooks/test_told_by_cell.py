"""Lines of a handed-in notebook are told by cell wherever a line is told, and no line of a script is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader import cli
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.fix import Edit, Fix
from grader.model.notebook_lines import by_cell
from grader.model.submission import SourceFile, Submission
from grader.report.findings.quote import quotes
from tests.notebooks.notebook_files import notebook

SETUP = "# grader: train.py\nimport torch.distributed as dist\n\ndist.init_process_group('gloo')"
GUARDED = "# grader: train.py\nif dist.get_rank() == 0:\n    dist.barrier()\ndist.destroy_process_group()"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "lab.ipynb"
    path.write_bytes(notebook(("markdown", "# Lab"), SETUP, "1 + 1", GUARDED))
    return path


def _lint(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    cli.main(["lint", *args])
    return capsys.readouterr().out


def test_lint_tells_cells_to_people_programs_and_workflows(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _lint(capsys, "lab.ipynb")
    assert "cell 4, line 3\n" in text
    assert "3 ▸ dist.barrier()" in text
    assert "train.py:" not in text
    found = json.loads(_lint(capsys, "*.ipynb", "--json"))["files"][0]["findings"][0]
    assert (found["line"], found["where"][0]["cell"]) == (7, "cell 4, line 3")
    assert "file=lab.ipynb,title=DIST003::cell 4, line 3: " in _lint(
        capsys, "lab.ipynb", "--format", "github"
    )
    sarif: dict[str, Any] = json.loads(_lint(capsys, "lab.ipynb", "--format", "sarif"))
    result = sarif["runs"][0]["results"][0]
    assert result["message"]["text"].startswith("cell 4, line 3: ")
    assert "region" not in result["locations"][0]["physicalLocation"], (
        "a line of the file is no line of the cell"
    )


def test_a_notebook_is_mended_by_its_author(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lab.read_bytes()
    assert cli.main(["lint", "--fix", "lab.ipynb"]) == 2
    assert "--diff shows what to change in its cells" in capsys.readouterr().err
    assert lab.read_bytes() == before
    assert "-    dist.barrier()" in _lint(capsys, "lab.ipynb", "--diff")


def test_a_cell_that_is_no_python_is_told(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab.write_bytes(notebook("%%writefile train.py\nx = 1\ndef f(:\n"))
    assert "(cell 1, line 3, column 7)" in _lint(capsys, "lab.ipynb").replace("\n   ", " ")


def test_texts_places_and_facts_are_told_and_edits_are_not() -> None:
    text = "# %% cell 3 of lab.ipynb\na = 1\n# %% cell 8 of lab.ipynb\nb = 2\n"
    submission = Submission("lab", (SourceFile("net.py", "c = 3\n"), SourceFile("train.py", text)))
    fix = Fix("Says train.py:2.", (Edit("train.py", 2, 1, 2, 1, "train.py:2"),))
    finding = Finding(
        "X",
        Severity.ERROR,
        EvidenceKind.TRACE,
        "`train.py:2`, src/train.py:2, `net.py:1` and train.py:4.",
        where=(Location("train.py", 4), Location("net.py", 1)),
        details={"train.py:4": ["train.py:4", 7]},
        fix=fix,
    )
    told = by_cell(finding, submission)
    assert told.message == "`cell 3, line 2`, src/train.py:2, `net.py:1` and cell 8, line 2."
    assert [str(place) for place in told.where] == ["cell 8, line 2", "net.py:1"]
    assert told.details == {"train.py:4": ["cell 8, line 2", 7]}
    assert told.fix == fix
    assert by_cell(told, submission) == told, "told once"
    places = (Location("train.py", 2), Location("train.py", 4))
    (quote,) = quotes(submission, places, 1)
    assert quote.place == "cell 3, line 2, cell 8, line 2"
    assert [line.number for line in quote.lines] == [1, 2, 1, 2]


def test_a_script_with_cells_of_another_editor_keeps_its_lines() -> None:
    submission = Submission("s", (SourceFile("train.py", "# %% cell 1 of 3\nx = 1\n"),))
    assert by_cell("train.py:2", submission) == "train.py:2"
