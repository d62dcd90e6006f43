"""Attempts that earlier versions stored are shown as they were judged, and judged again on the scale of today.

`fixtures/` holds attempts as 0.1.0 left them before its evidence was one object, without weights and reports.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from grader.judging.judge import regrade
from grader.report.audience import Audience
from grader.report.json_report import from_json, to_json
from grader.run.workspace import Workspace

# Wrong figures are shown where they are computed now, and were where they are written.
SHOWN_ELSEWHERE = ("EVAL010",)
STORED = sorted((Path(__file__).parent / "fixtures").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", STORED, ids=lambda path: path.name.partition(".")[0])
def test_a_stored_attempt_gets_the_same_grade(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        # The first Pythons 3.11 know no filter; it is our own archive.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(tmp_path, **safe)
    workspace = Workspace(tmp_path)
    before = json.loads(workspace.grade.read_text(encoding="utf-8"))
    shown = from_json(workspace.grade.read_text(encoding="utf-8"))
    assert shown.earlier_scale
    assert ("samples_per_s" in shown.metrics, "images_per_s" in shown.metrics) == (True, False)
    assert [measure.name for measure in shown.measures] == ["accuracy"] * (
        before["metrics"]["accuracy"] is not None
    )
    assert (shown.points, shown.max_points) == (before["points"], before["max_points"])
    assert sum(item.earned for item in shown.rubric) == pytest.approx(shown.points)
    again = regrade(workspace).grade
    assert not again.earlier_scale
    assert again.max_points == 100
    assert sum(item.earned for item in again.rubric) == pytest.approx(again.points)
    now = json.loads(to_json(again, audience=Audience.STAFF))
    for said in (before, now):
        # What a finding says may be said better, and more may be known to follow from it; what it is worth, where it
        # points and why it holds may not change.
        said.pop("task_version")
        # Steps are timed from each to the next now, and every sample was an image then; no point hangs on speeds. What
        # a task does not measure had a null.
        said["metrics"] = {
            name: value
            for name, value in said["metrics"].items()
            if value is not None and "_per_s" not in name and name not in ("speedup", "efficiency")
        }
        for finding in said["findings"]:
            finding.pop("message"), finding.pop("hint")
            finding["details"].pop("explains", None), finding["details"].pop("milder", None)
            if finding["code"] in SHOWN_ELSEWHERE:
                for place in ("path", "line", "column", "end_line", "where"):
                    finding.pop(place, None)
        if said["diagnosis"] is not None:
            told = said["diagnosis"]
            told.pop("hint"), told.pop("explanation")
            told["where"] = sorted((place["path"], place["line"]) for place in told["where"])
    judged = ("verdict", "metrics", "findings", "diagnosis")
    assert {name: now[name] for name in judged} == {name: before[name] for name in judged}
