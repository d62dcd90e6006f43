"""The main road as a user walks it: grade, report, regrade, lint, verify, and Ctrl-C in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from tests import promised
from tests.acceptance.conftest import CHECKOUT, Cli
from tests.interrupts import in_foreground

SUBMISSIONS = CHECKOUT / "tasks" / "ddp-fashion" / "submissions"
TOY = CHECKOUT / "tasks" / "ddp-toy" / "submissions" / "accepted" / "launcher_variables.py"
REFERENCE = SUBMISSIONS / "accepted" / "distributed_sampler.py"


def test_the_reference_is_accepted_and_judged_again_to_the_byte(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    graded = cli("grade", "ddp-fashion", REFERENCE, "--json", "--out", out)
    assert graded.returncode == 0, graded.stdout + graded.stderr
    grade = json.loads(graded.stdout)
    assert grade["schema"] == 2
    assert grade["verdict"] == "accepted"
    assert grade["findings"] == []
    assert grade["points"] == grade["max_points"]
    assert grade["metrics"]["accuracy"] >= grade["metrics"]["accuracy_target"]
    stored = (out / "grade.json").read_bytes()
    again = cli("regrade", out, "--json")
    assert again.returncode == 0, again.stderr
    assert again.stdout == graded.stdout
    assert (out / "grade.json").read_bytes() == stored
    assert (out / "report.html").read_text().lower().startswith("<!doctype html>")


def test_a_flawed_submission_is_rejected_with_the_line_to_mend(cli: Cli, tmp_path: Path) -> None:
    path = promised.script("ddp-fashion", "rejected/no_distributed_sampler", tmp_path)
    marked = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if "# <- DATA001" in line)
    result = cli("grade", "ddp-fashion", path, "--json", "--out", tmp_path / "out")
    assert result.returncode == 1, result.stderr
    grade = json.loads(result.stdout)
    finding = next(f for f in grade["findings"] if f["code"] == "DATA001")
    assert (finding["severity"], finding["path"], finding["line"]) == ("error", "train.py", marked)
    assert finding["message"]
    assert finding["hint"]


def test_a_forged_score_earns_no_accuracy_points(cli: Cli, tmp_path: Path) -> None:
    result = cli(
        "grade",
        "ddp-fashion",
        SUBMISSIONS / "rejected" / "forged_score.py",
        "--json",
        "--out",
        tmp_path / "o",
    )
    assert result.returncode == 1, result.stderr
    grade = json.loads(result.stdout)
    accuracy_items = [item for item in grade["rubric"] if item["id"] == "accuracy"]
    assert accuracy_items
    assert all(item["earned"] == 0 for item in accuracy_items)


def test_a_deadlock_names_file_line_and_collective_of_each_rank(cli: Cli, tmp_path: Path) -> None:
    path = promised.script("ddp-fashion", "deadlocked/collective_on_rank_zero", tmp_path)
    marked = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if "# <- DIST003" in line)
    began = time.monotonic()
    result = cli("grade", "ddp-fashion", path, "--out", tmp_path / "out")
    assert result.returncode == 1, result.stderr
    assert time.monotonic() - began < 120
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["ending"] == "deadlocked"
    # The promise is 25 s from the ranks' start; the clock that says so is the supervisor's.
    assert record["wall_s"] <= 25
    waiting = {rank["rank"]: rank["waiting"] for rank in record["ranks"]}
    assert waiting[0]["site"]["line"] == marked
    assert waiting[0]["operation"]
    assert waiting[1]["site"] is not None
    assert f"train.py:{marked}" in result.stdout


def test_rank_counts_other_than_the_profiles(cli: Cli, tmp_path: Path) -> None:
    for nproc in ("1", "3"):
        result = cli("grade", "ddp-toy", TOY, "--nproc-per-node", nproc, "--json", "--out", tmp_path / nproc)
        assert result.returncode == 0, result.stdout + result.stderr
        assert json.loads(result.stdout)["world_size"] == int(nproc)


def test_the_torchrun_command_gives_the_same_grade(cli: Cli, tmp_path: Path) -> None:
    result = cli("grade", "ddp-toy", TOY, "--cold", "--json", "--out", tmp_path / "out")
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout)["findings"] == []
    assert json.loads((tmp_path / "out" / "record.json").read_text())["launcher"] == "torchrun"


def test_lint_reads_the_text_alone(cli: Cli, tmp_path: Path) -> None:
    script = promised.script("ddp-fashion", "rejected/no_set_epoch", tmp_path)
    result = cli("lint", script, "--json")
    findings = json.loads(result.stdout)["files"][0]["findings"]
    assert {f["code"] for f in findings} == {"DATA002"}
    assert all(f["evidence"] == "source" for f in findings)
    assert result.returncode == 0


def test_lint_and_pages_do_not_import_torch() -> None:
    program = (
        "import sys; from grader.cli import main; code = main(['lint', sys.argv[1]]); "
        "heavy = {'torch', 'numpy', 'matplotlib', 'jinja2'} & set(sys.modules); "
        "print(sorted(heavy)); sys.exit(3 if heavy else code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(REFERENCE)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_verify_compares_outcomes_with_promises(cli: Cli, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    result = cli("verify", "ddp-fashion", "--only", "no_set_epoch", "--junit", junit, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    (case,) = json.loads(result.stdout)["cases"]
    assert case["verdict"] == "rejected"
    assert case["codes"] == ["DATA002"]
    assert ElementTree.parse(junit).getroot().attrib["failures"] == "0"


def test_a_broken_promise_is_told_and_fails(cli: Cli, cli_env: dict[str, str], tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    shutil.copytree(CHECKOUT / "tasks" / "ddp-fashion", tasks / "ddp-fashion")
    folder = tasks / "ddp-fashion" / "submissions"
    promised.script("ddp-fashion", "crashed/ddp_without_process_group", folder / "rejected").rename(
        folder / "rejected" / "moved_here.py"
    )
    cli_env["GRADER_TASKS_DIR"] = str(tasks)
    junit = tmp_path / "junit.xml"
    result = cli("verify", "ddp-fashion", "--only", "moved_here", "--junit", junit)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "verdict crashed, promised rejected" in result.stdout
    way_on = next(
        line for line in result.stdout.splitlines() if line.startswith("  To see its report: grader ")
    )
    again = cli(*way_on.partition("grader ")[2].split()[:-1], tmp_path / "kept")
    assert f"  Its report: {tmp_path / 'kept'}" in again.stdout
    assert len(list((tmp_path / "kept").glob("*/report.html"))) == 1
    assert ElementTree.parse(junit).getroot().attrib["failures"] == "1"


def _alive_below(session_marker: str) -> list[str]:
    """Command lines of live processes whose environment carries the marker."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if session_marker.encode() in environ.read_bytes():
                found.append((environ.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_interrupting_leaves_no_process_and_no_half_report(cli_env: dict[str, str], tmp_path: Path) -> None:
    marker = f"MARKER={tmp_path.name}-{os.getpid()}"
    out = tmp_path / "out"
    name, _, value = marker.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "grade", "ddp-fashion", str(REFERENCE), "--out", str(out)],
        cwd=CHECKOUT,
        env={**cli_env, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # It only sets how a signal is taken.
        preexec_fn=in_foreground,  # noqa: PLW1509
    )
    try:
        # Wait until ranks are really training, then press Ctrl-C as a terminal does: to the whole foreground group.
        deadline = time.monotonic() + 120
        while not any((out / "trace").glob("*.trace")) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert any((out / "trace").glob("*.trace"))
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    time.sleep(0.5)
    assert _alive_below(marker) == []
    assert not (out / "grade.json").exists()
