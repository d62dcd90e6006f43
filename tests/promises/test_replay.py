"""Kept evidence of the tasks' own submissions is judged again: what an edit to rules, score or report does to them.

Evidence comes from real runs alone (`make test-all`, or `grader verify`). Where none fits, one submission of each
ending and family is run here instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.submissions.submission_selection import load_selected
from grader.catalog.tasks.task_folders import load_task
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import Pipeline
from grader.promises.verification import Reuse, Verification, verify
from grader.report.json_report import from_json
from tests.conftest import SUMMARY
from tests.web.told_outcomes import left_by
from tests.web.whole_class import hold_for_class

Todo = tuple[Task, PromisedSubmission]
# One that runs within seconds for each verdict that a task promises in plain processes.
ENDINGS = {
    "accepted": ("ddp-toy", "accepted/flat_script"),
    "rejected": ("ddp-toy", "rejected/never_wrapped"),
    "crashed": ("ddp-toy", "crashed/exception_on_one_rank"),
    "deadlocked": ("ddp-toy", "deadlocked/collective_on_rank_zero"),
    "out_of_memory": ("ddp-fashion", "out_of_memory/"),
    "held": ("ddp-fashion", "held/"),
}
# Tasks whose submissions show a fault of each family, within seconds; the quickest first.
PLAIN = ("ddp-toy", "fsdp", "ddp-fashion")


def runtime_of(task: Task) -> str:
    return "docker" if task.profiles[0].nnodes > 1 else "process"


def judged(todo: list[Todo], reuse: Reuse, folder: Path | None = None) -> list[VerifyCase]:
    cases: list[VerifyCase] = []
    for runtime in ("process", "docker"):
        mine = [(task, promised) for task, promised in todo if runtime_of(task) == runtime]
        # What runs here needs no clock: the reference that times are held against would take longer than all of it.
        options = Options(dataset="digits", timed=reuse is Reuse.ONLY)
        how = Verification(options, runtime, reuse, folder=folder and folder / runtime)
        cases += verify(mine, how, lambda _sign: None, lambda _case: None) if mine else ()
    return cases


def broken(cases: list[VerifyCase]) -> dict[str, str]:
    return {f"{case.task}/{case.submission}": case.message for case in cases if not case.ok}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all that is judged here leaves its grade and report."""
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def replayed(reports: Path) -> list[VerifyCase]:
    return judged(list(load_selected(())), Reuse.ONLY, reports / "replayed")


@pytest.fixture(scope="module")
def run(reports: Path) -> dict[str, list[VerifyCase]]:
    """One submission of each ending, really run."""
    cases = {}
    for verdict, (task, name) in ENDINGS.items():
        todo = [one for one in load_selected((task,)) if one[1].name.startswith(name)][:1]
        cases[verdict] = judged(todo, Reuse.NEVER, reports / verdict)
    return cases


def test_every_kept_run_is_judged_to_its_promise(
    replayed: list[VerifyCase], record_property: Callable[[str, object], None]
) -> None:
    effects = {f"{c.task}/{c.submission}": c.effects for c in replayed if c.effects}
    missing = [case for case in replayed if case.skipped]
    summary = [f"judged again: {len(replayed) - len(missing)} of {len(replayed)} promised submissions"]
    if missing:
        summary.append(f"no evidence that still fits of {len(missing)}; `make test-all` makes it")
    summary += [f"other than when it was run: {name}: {', '.join(what)}" for name, what in effects.items()]
    record_property(SUMMARY, summary)
    assert broken(replayed) == {}


@pytest.mark.parametrize("verdict", ENDINGS)
def test_one_of_each_ending_really_runs(run: dict[str, list[VerifyCase]], verdict: str) -> None:
    (case,) = run[verdict]
    assert (case.verdict, case.message) == (verdict, "")


def test_each_of_them_is_one_number_everywhere(
    replayed: list[VerifyCase], run: dict[str, list[VerifyCase]], reports: Path, tmp_path: Path
) -> None:
    """All promises and endings through the database: as they were judged, and after a regrade with an override."""
    left = [
        left_by(
            from_json(grade.read_text(encoding="utf-8")), (grade.parent / "report.html").read_text("utf-8")
        )
        for grade in sorted(reports.glob("*/*/*/grade.json"))
    ]
    assert len(left) >= len(run) + sum(not case.skipped for case in replayed)
    hold_for_class(left, tmp_path)


def test_every_finding_of_theirs_that_learners_read_says_what_to_do(
    replayed: list[VerifyCase], run: dict[str, list[VerifyCase]], reports: Path
) -> None:
    assert len(replayed) + len(run)
    grades = {path: from_json(path.read_text(encoding="utf-8")) for path in reports.rglob("grade.json")}
    empty = {
        f"{path.parent.name} {finding.code}": finding.message
        for path, grade in grades.items()
        for finding in grade.findings
        if not finding.hint and finding.severity is not Severity.REVIEW
    }
    assert empty == {}


def families_of(promised: PromisedSubmission) -> set[str]:
    return {code.rstrip("0123456789") for code in promised.codes}


def test_every_family_is_promised_by_a_task_that_runs_in_plain_processes() -> None:
    everywhere, here = (
        set().union(*(families_of(promised) for _, promised in load_selected(names))) for names in ((), PLAIN)
    )
    assert here == everywhere


def test_one_of_each_family_runs_where_no_evidence_fits(
    replayed: list[VerifyCase], run: dict[str, list[VerifyCase]]
) -> None:
    missing = {(case.task, case.submission) for case in replayed if case.skipped}
    ran = {(case.task, case.submission) for (case,) in run.values()}
    plain = {
        (task.name, promised.path.relative_to(task.folder / "submissions").as_posix()): (task, promised)
        for task, promised in sorted(load_selected(PLAIN), key=lambda one: PLAIN.index(one[0].name))
    }
    shown = {family for place in ran & plain.keys() for family in families_of(plain[place][1])}
    todo: list[Todo] = []
    for place, (task, promised) in plain.items():
        if place in missing and families_of(promised) - shown:
            shown |= families_of(promised)
            todo.append((task, promised))
    assert broken(judged(todo, Reuse.NEVER)) == {}


def test_a_run_beyond_its_limit_is_timed_out(tmp_path: Path) -> None:
    task = load_task("ddp-toy")
    profiles = tuple(replace(p, limits=replace(p.limits, wall_s=3.0)) for p in task.profiles)
    endless = Submission(
        "endless", (SourceFile("train.py", "import time\n\nwhile True:\n    time.sleep(0.1)\n"),)
    )
    with Pipeline("process") as pipeline:
        attempt, _ = pipeline.grade(
            replace(task, profiles=profiles), endless, options=Options(), out=tmp_path / "attempt"
        )
    assert attempt.grade.verdict is Verdict.TIMED_OUT, attempt.grade.verdict_reason
