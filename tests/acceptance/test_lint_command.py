"""`grader lint` as editors, hooks and CI jobs call it: streams, exit codes, choices, formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.cli import main
from tests import promised
from tests.acceptance.conftest import CHECKOUT, Cli

SUBMISSIONS = CHECKOUT / "tasks" / "ddp-fashion" / "submissions"
CLEAN = SUBMISSIONS / "accepted" / "distributed_sampler.py"


@pytest.fixture(scope="module")
def error(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script with a finding of severity error."""
    folder = tmp_path_factory.mktemp("scripts")
    return promised.script("ddp-fashion", "rejected/no_distributed_sampler", folder)


@pytest.fixture(scope="module")
def warning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with a warning and no error."""
    return promised.script("ddp-fashion", "rejected/no_set_epoch", tmp_path_factory.mktemp("scripts"))


def pipe(text: bytes, *args: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "grader", "lint", *args],
        input=text,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_an_editors_buffer_comes_through_standard_input(tmp_path: Path, error: Path) -> None:
    done = pipe(error.read_bytes(), "-", "--stdin-filename", "src/ddp.py", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (file,) = json.loads(done.stdout)["files"]
    assert file["file"] == "src/ddp.py"
    assert "DATA001" in {finding["code"] for finding in file["findings"]}
    assert (
        "ddp.py:" in pipe(error.read_bytes(), "-", "--stdin-filename", "ddp.py", cwd=tmp_path).stdout.decode()
    )
    assert pipe(b"", "-", cwd=tmp_path).returncode == 0
    assert pipe(b"\0", "-", cwd=tmp_path).returncode == 2
    assert pipe(b"", "--stdin-filename", "x.py", str(CLEAN), cwd=tmp_path).returncode == 2


def test_bad_files_are_told_and_the_others_are_linted(cli: Cli, tmp_path: Path, error: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\0")
    result = cli(
        "lint", tmp_path / "binary.py", error, tmp_path / "gone.py", "--json", "--sarif", "out/l.sarif"
    )
    assert result.returncode == 2
    files = json.loads(result.stdout)["files"]
    assert [bool(file.get("error")) for file in files] == [True, False, True]
    assert files[1]["findings"]
    assert "binary.py" in result.stderr
    assert "gone.py" in result.stderr
    assert "Traceback" not in result.stderr
    (run,) = json.loads((tmp_path / "out" / "l.sarif").read_text())["runs"]
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    assert run["results"]


def test_exit_codes(capsys: pytest.CaptureFixture[str], error: Path, warning: Path) -> None:
    for arguments, code in (
        ((CLEAN,), 0),
        ((warning,), 0),
        ((CLEAN, error), 1),
        ((error, "--exit-zero"), 0),
        ((error, "--ignore", "DATA"), 0),
        ((error, "--select", "IO"), 0),
        ((error, "--select", "NOPE"), 2),
        ((error, "--ignore", "DATA999"), 2),
        ((error, "--json", "--format", "text"), 2),
        ((error, "--sarif", CHECKOUT), 2),
        (("nothing/**/*.py",), 2),
    ):
        found, shown = main(["lint", *map(str, arguments)]), capsys.readouterr()
        assert found == code, (arguments, shown)
        assert bool(shown.err) is (code == 2)


def test_held_against_a_task_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    skeleton = CHECKOUT / "skeletons" / "ddp-fashion" / "train.py"
    assert main(["lint", str(skeleton)]) == 0
    plain = capsys.readouterr().out
    assert "no findings in the text; what the script does, only a run shows" in plain
    assert "--task" in plain
    assert main(["lint", "--task", "ddp-fashion", str(skeleton)]) == 1
    told = " ".join(capsys.readouterr().out.split())
    in_order = [
        "starts a process group",
        "Nothing wraps the model",
        "Nothing divides",
        "`set_epoch`",
        "from writing",
    ]
    assert sorted(in_order, key=told.index) == in_order
    assert "5 of 7 things that must be right are not in the text yet." in told
    assert "no findings" not in told, "an untouched skeleton is not praised"
    assert main(["lint", "--task", "ddp-fashion", str(CLEAN), "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert {step["id"]: step["sight"] for step in file["steps"]}["gradients"] == "seen"
    assert "steps" not in json.loads(_printed(capsys, "lint", str(CLEAN), "--json"))["files"][0]
    assert main(["lint", "--task", "nowhere", str(CLEAN)]) == 2


def test_file_that_does_not_parse_has_a_title_and_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("def (:\n")
    assert "SYNTAX Python cannot read the script" in _printed(capsys, "lint", str(tmp_path / "train.py"))
    assert "py_compile" in _printed(capsys, "rule", "SYNTAX")


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(list(arguments))
    return capsys.readouterr().out


def test_folders_and_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", str(SUBMISSIONS / "accepted"), "--json"])
    names = {Path(file["file"]).name for file in json.loads(capsys.readouterr().out)["files"]}
    assert {"distributed_sampler.py", "helper_modules"} <= names
    main(["lint", f"{CHECKOUT}/tasks/ddp-fashion/**/forged_*.py", "--json"])
    names = {Path(file["file"]).name for file in json.loads(capsys.readouterr().out)["files"]}
    assert names == {p.name for p in (CHECKOUT / "tasks" / "ddp-fashion").glob("**/forged_*.py")}


@pytest.mark.parametrize("form", ["json", "sarif", "github", "text"])
def test_formats_for_programs_are_all_there_is_on_standard_output(form: str, cli: Cli, error: Path) -> None:
    result = cli("lint", error, CLEAN, "--format", form)
    assert result.returncode == 1
    if form in {"json", "sarif"}:
        json.loads(result.stdout)
    elif form == "github":
        assert all(line.startswith("::") for line in result.stdout.splitlines())
        assert f"file={error},line=" in result.stdout
    else:
        assert f"{error.name}:" in result.stdout


def test_only_a_task_says_what_stands_in_the_way(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = promised.script("ddp-fashion", "rejected/no_set_epoch", tmp_path)
    alone = _printed(capsys, "lint", str(script))
    assert "Warnings (1)" in alone
    assert not any(word in alone for word in ("acceptance", "points", "costs", "Must be fixed"))
    against = _printed(capsys, "lint", "--task", "ddp-fashion", str(script))
    assert "Must be fixed (1)" in against
    assert "Warnings" not in against


@pytest.mark.slow
def test_a_silenced_finding_is_counted_in_lint_and_stands_in_a_grade(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], warning: Path
) -> None:
    def lint(*arguments: str | Path) -> list[dict[str, Any]]:
        main(["lint", *map(str, arguments)])
        (file,) = json.loads(capsys.readouterr().out)["files"]
        findings: list[dict[str, Any]] = file["findings"]
        return findings

    (told,) = (f for f in lint("--json", warning) if f["code"] == "DATA002")
    lines = warning.read_text().splitlines()
    lines[told["line"] - 1] += "  # noqa: DATA002"
    quiet = tmp_path / "train.py"
    quiet.write_text("\n".join(lines) + "\n")
    assert "DATA002" not in {finding["code"] for finding in lint("--json", quiet)}
    assert main(["lint", str(quiet)]) == 0
    assert "1 more silenced by `# noqa`" in capsys.readouterr().out
    exports = {name: tmp_path / f"reports/{name}" for name in ("gradescope", "junit", "markdown")}
    options = [x for name, path in exports.items() for x in (f"--{name}", path)]
    graded = cli("grade", "ddp-fashion", quiet, "--json", "--out", tmp_path / "out", *options)
    assert graded.returncode == 1, graded.stderr
    grade = json.loads(graded.stdout)
    assert "DATA002" in {finding["code"] for finding in grade["findings"]}

    # The same run: each export tells the same story, and judging it again writes the same bytes.
    results = json.loads(exports["gradescope"].read_text())
    assert results["extra_data"]["verdict"] == grade["verdict"] == "rejected"
    assert sum(test["score"] for test in results["tests"]) == pytest.approx(grade["points"])
    assert sum(test["max_score"] for test in results["tests"]) == pytest.approx(grade["max_points"])
    assert "DATA002" in exports["markdown"].read_text()
    assert 'type="rejected"' in exports["junit"].read_text()
    before = {name: path.read_bytes() for name, path in exports.items()}
    for path in exports.values():
        path.unlink()
    assert cli("regrade", tmp_path / "out", *options).returncode == 1
    assert {name: path.read_bytes() for name, path in exports.items()} == before


def test_an_export_that_cannot_be_written_is_told_before_anything_runs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for options in (
        ("--junit", tmp_path / "folder"),
        ("--markdown", tmp_path / "file" / "below.md"),
        ("--junit", tmp_path / "x", "--markdown", tmp_path / "x"),
    ):
        result = cli("grade", "ddp-fashion", CLEAN, "--out", tmp_path / "out", *options)
        assert result.returncode == 2, result.stderr
        assert str(options[0]) in result.stderr
        assert not (tmp_path / "out").exists()
