"""Every submission of every task gets the verdict of its folder and exactly the codes of its header, in a real run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.attempts import open_attempt
from grader.catalog import find_tasks, load_task, read_submission, submissions_of
from grader.checks.rule import load_rules
from grader.judgement import regrade
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.pipeline import Options, Pipeline
from grader.report.html import to_html
from grader.report.json_report import to_json
from grader.verify import broken_promises

PROMISES = [(name, promised) for name in find_tasks() for promised in submissions_of(load_task(name))]


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline(Options(dataset="digits"), lambda sign: None) as warm:
        yield warm


@pytest.mark.parametrize(("task_name", "promised"), PROMISES, ids=[f"{t}-{p.name}" for t, p in PROMISES])
def test_each_submission_keeps_its_promise(
    task_name: str, promised: PromisedSubmission, pipeline: Pipeline, tmp_path: Path
) -> None:
    task = load_task(task_name)
    attempt, workspace = pipeline.grade(task, read_submission(promised.path), tmp_path / "attempt")
    assert broken_promises(promised, attempt) == []
    if promised.verdict == Verdict.ACCEPTED:
        assert [f.code for f in attempt.grade.findings if f.severity is Severity.ERROR] == []
    # The same evidence judged again gives the same bytes, and every report renders.
    again = regrade(open_attempt(workspace.root))
    assert to_json(again.grade) == to_json(attempt.grade)
    assert attempt.grade.verdict_reason.split()[0] in to_html(attempt)


def test_every_rule_of_the_task_has_a_flawed_submission() -> None:
    # What a task picks out it shows itself; whatever can stand against acceptance is shown somewhere.
    everywhere = {code for _, promised in PROMISES for code in promised.codes}
    assert {rule.code for rule in load_rules() if rule.severity is Severity.ERROR} <= everywhere
    for name in find_tasks():
        picked = set(load_task(name).checks)
        shown = {code for task, promised in PROMISES if task == name for code in promised.codes}
        assert picked <= shown, name
