"""Write an attempt's reports into its folder, beside the evidence they were made from."""

from __future__ import annotations

from grader.files import write_whole
from grader.judging.attempt import Attempt
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.run.workspace import Workspace


def write_reports(attempt: Attempt, workspace: Workspace) -> None:
    """Write `grade.json` (complete, for staff and programs) and `report.html` (for the learner)."""
    for path, text in (
        (workspace.grade, to_json(attempt.grade, audience=Audience.STAFF)),
        (workspace.report, to_html(attempt)),
    ):
        write_whole(path, text)
