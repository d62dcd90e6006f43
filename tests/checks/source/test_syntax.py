"""A submission that is no Python gets one clear finding with line and column, and nothing else."""

from __future__ import annotations

import sys

import pytest

from grader.checks.lint import lint
from grader.checks.source.script import parse
from grader.model.finding import EvidenceKind, Severity
from grader.model.submission import SourceFile, Submission


def submission(text: str, name: str = "train.py") -> Submission:
    return Submission("test", (SourceFile(name, text),))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("import torch\nx = (1,\n", 2, 5),
        ("def f():\nreturn 1\n", 2, 1),
        ("x = 1\n\0\n", 2, 1),
        ("print 'hello'\n", 1, 1),
        ("x = '\ud800'\n", 1, 1),
        ("x = 1\nreturn x\n", 2, 1),
        ("def f():\n    x = 1\n    global x\n", 3, 5),
        ("def f(a, a):\n    pass\n", 1, 10),
        ("for x in []:\n    pass\nbreak\n", 3, 1),
    ],
)
def test_one_finding_with_its_place(text: str, line: int, column: int) -> None:
    findings = lint(submission(text))
    assert [(f.code, f.severity, f.evidence) for f in findings] == [
        ("SYNTAX", Severity.ERROR, EvidenceKind.SOURCE)
    ]
    where = findings[0].where[0]
    assert (where.path, where.line, where.column) == ("train.py", line, column)
    assert f"line {line}" in findings[0].message


@pytest.mark.parametrize(
    "text", ["(" * 5_000 + ")" * 5_000, "x = " + "-" * 200_000 + "1", "[" * 150 + "]" * 150]
)
def test_deep_nesting_is_said_and_not_suffered(text: str) -> None:
    assert {f.code for f in lint(submission(text))} <= {"SYNTAX"}


def test_a_broken_helper_silences_the_rules_of_the_whole_submission() -> None:
    train = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
    files = (SourceFile("helper.py", "def :\n"), SourceFile("train.py", train))
    assert [f.code for f in lint(Submission("test", files))] == ["SYNTAX"]


def test_what_is_no_python_file_is_not_parsed() -> None:
    files = (SourceFile("notes.txt", "not python at all ("), SourceFile("train.py", "x = 1\n"))
    assert parse(Submission("test", files)).syntax_errors == ()


def test_a_byte_order_mark_is_no_error() -> None:
    assert lint(submission("\ufeffx = 1\n")) == ()


def test_long_flat_expressions_are_fine() -> None:
    assert lint(submission("x = " + " + ".join(["1"] * 600) + "\n" + "y = f" + ".g" * 300 + "\n")) == ()


def test_lines_are_counted_as_python_counts_them() -> None:
    text = "a = 1\r\nb = 2\rc = '\x0c \u2028'\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
    findings = lint(submission(text))
    assert [(f.code, f.where[0].line) for f in findings] == [("DIST002", 5)]
    assert parse(submission(text)).line("train.py", 5).startswith("dist.init")


def test_the_version_that_reads_it_is_named() -> None:
    (finding,) = lint(submission("x = = 1\n"))
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert f"`train.py` is not valid {version}: " in finding.message
    assert version in finding.hint


def test_a_file_alone_may_be_called_like_what_it_imports() -> None:
    text = "import timm\nimport torch.distributed as dist\ndist.init_process_group('nccl', rank=0)\n"
    text += "model = timm.create_model('resnet18')\n"
    codes = {finding.code for finding in lint(submission(text))}
    assert "DIST004" in codes
    found = lint(submission(text, "timm.py"))
    assert {finding.code for finding in found} == codes
    assert {where.path for finding in found for where in finding.where} == {"timm.py"}
