"""Write an attempt's reports into its folder, beside the evidence they were made from."""

from __future__ import annotations

from grader.model.attempt import Attempt
from grader.report.audience import Audience
from grader.report.html import to_html
from grader.report.json_report import to_json
from grader.run.workspace import Workspace


def write_reports(attempt: Attempt, workspace: Workspace) -> None:
    """Write `grade.json` (complete, for staff and programs) and `report.html` (for the learner).

    Each is written beside its place first and then moved, so that no reader ever meets half a report.
    """
    for path, text in (
        (workspace.grade, to_json(attempt.grade, audience=Audience.STAFF)),
        (workspace.report, to_html(attempt)),
    ):
        half = path.with_suffix(path.suffix + ".part")
        half.write_text(text, encoding="utf-8")
        half.replace(path)
