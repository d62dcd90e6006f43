"""A profile for GPUs on a machine without any: refused, unless somebody wants its accuracy proved on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grader.launch.record import write_json
from grader.report.json_report import from_json
from tests.acceptance.conftest import Cli
from tests.promised import script


def test_four_ranks_prove_the_accuracy_of_a_gpu_profile_and_the_report_says_on_what(
    cli: Cli, tmp_path: Path
) -> None:
    assert cli("data", "prepare", "digits").returncode == 0
    file = script("ddp-fashion", "accepted/distributed_sampler", tmp_path)
    out = tmp_path / "attempt"
    asked = ("grade", "ddp-fashion", file, "--profile", "gpu", "--dataset", "digits", "--out", out, "--json")
    done = cli(*asked, "--on-cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    grade: dict[str, Any] = json.loads(done.stdout)
    assert (grade["verdict"], grade["world_size"], grade["points"]) == ("accepted", 4, 100)
    assert grade["metrics"]["accuracy"] >= grade["metrics"]["accuracy_target"] > 0.9
    assert "time_target_s" not in grade["metrics"] or grade["metrics"]["time_target_s"] is None
    assert grade["environment"]["on_cpu"] is True
    assert any("The gpu profile was run on the CPU" in note for note in grade["notes"])
    assert "The gpu profile was run on the CPU" in (out / "report.html").read_text()
    assert json.loads((out / "attempt.json").read_text())["on_cpu"] is True
    # Judged again it is what it was; had nobody wanted it so, it would be nobody's fault but the machine's.
    again = cli("regrade", out, "--json")
    assert (again.returncode, from_json(again.stdout)) == (0, from_json(done.stdout))
    facts = json.loads((out / "attempt.json").read_text())
    write_json(out / "attempt.json", facts | {"on_cpu": False})
    assert from_json(cli("regrade", out, "--json").stdout).verdict == "judge_error"


def test_promises_are_held_on_a_profile_for_gpus_where_there_is_none(cli: Cli) -> None:
    asked = ("verify", "ddp-toy", "--only", "launcher_variables", "--profile", "gpu", "--json")
    refused = json.loads(cli(*asked).stdout)
    assert [case["ok"] for case in refused["cases"]] == [False]
    assert "GPUs are needed" in json.dumps(refused)
    held = cli(*asked, "--on-cpu")
    assert held.returncode == 0, held.stdout
