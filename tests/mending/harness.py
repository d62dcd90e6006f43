"""One script, mended as its report says: judged, its fixes made and its recorded edit applied, judged again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.patches import SUFFIX, read_patch
from grader.catalog.submissions.unified_diff import apply_anywhere, read_diff
from grader.catalog.tasks.task_folders import load_task
from grader.checks.lint import lint
from grader.model.finding import Finding, Severity
from grader.model.fix import Fix, mended
from grader.model.grade import Grade, Verdict
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.pipeline import Pipeline
from grader.report.findings.cards import effect_of


@dataclass(frozen=True, slots=True)
class Case:
    """A flawed script and the task that it is handed in for."""

    name: str
    task: str
    submission: Submission


@dataclass(frozen=True, slots=True)
class Mending:
    """What came of one script: the word for it, the codes that were found first, and what was left at the end."""

    name: str
    outcome: str
    first: tuple[str, ...]
    left: tuple[str, ...] = ()


def read_cases(folder: Path, task: str | None) -> Iterator[Case]:
    """All scripts of a folder, by name."""
    manifest = folder / "manifest.jsonl"
    lines = manifest.read_text(encoding="utf-8").splitlines() if manifest.is_file() else []
    tasks = {line["case"]: line["task"] for line in map(json.loads, lines)}
    near = folder.resolve().parent
    own = near.parent.name if near.name == "submissions" else None
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX:
            submission = read_patch(path, folder.parent).submission
        elif path.suffix == ".py" or (path / "train.py").is_file():
            submission = read_submission(path)
        else:
            continue
        if asked := task or tasks.get(path.stem) or own:
            yield Case(path.stem, asked, submission)


def to_mend(grade: Grade) -> tuple[Finding, ...]:
    """What stands in the way or costs points; where neither is told, all advice that the run has not refuted."""
    needed = charged(grade)
    return needed or tuple(f for f in grade.findings if f.severity is not Severity.REVIEW and not f.refuted)


def charged(grade: Grade) -> tuple[Finding, ...]:
    """Findings that stand between a script and acceptance, or cost points."""
    return tuple(f for f in grade.findings if effect_of(f, grade) in (Severity.ERROR, Severity.WARNING))


def left_over(grade: Grade) -> tuple[str, ...]:
    """What keeps a judgement from being all right: its findings, and must items that nothing explains."""
    missed = (item.id for item in grade.rubric if item.must and not item.codes and item.earned < item.points)
    told = () if grade.diagnosis is None else (grade.diagnosis.id,)
    verdict = () if grade.verdict is Verdict.ACCEPTED else (grade.verdict.value,)
    return (*verdict, *told, *dict.fromkeys(f.code for f in charged(grade)), *missed)


def with_fixes(submission: Submission, findings: tuple[Finding, ...]) -> Submission:
    """The script with all fixes in the order of the report; one that overlaps others is made in the text they leave."""
    fixes: list[Fix] = []
    late: list[Finding] = []
    for finding in findings:
        if finding.fix is not None and any(finding.fix.overlaps(other) for other in fixes):
            late.append(finding)
        elif finding.fix is not None:
            fixes.append(finding.fix)
    after = mended(submission, fixes)
    codes = {finding.code for finding in late}
    again = tuple(finding for finding in lint(after) if finding.code in codes and finding.fix) if late else ()
    return with_fixes(after, again[:1]) if again else after


def with_edit(submission: Submission, text: str) -> Submission:
    """The script with a recorded edit, a unified diff for each file that it changes."""
    for part in re.split(r"(?m)^(?=--- )", text):
        if part.startswith("--- "):
            diff = read_diff(part)
            files = tuple(
                replace(file, text=apply_anywhere(diff, file.text)) if file.path == diff.old_name else file
                for file in submission.files
            )
            submission = replace(submission, files=files)
    return submission


def mend(case: Case, pipeline: Pipeline, edits: Path, out: Path | None = None) -> Mending:
    """Judge a script, do what is said, and judge what came of it."""

    def judge(submission: Submission, part: str) -> Grade:
        folder = out / f"{case.name}.{part}" if out is not None else None
        options = Options(timed=False)
        return pipeline.grade(load_task(case.task), submission, options=options, out=folder)[0].grade

    first = judge(case.submission, "first")
    found = to_mend(first)
    told = left_over(first) or tuple(dict.fromkeys(finding.code for finding in found))
    if not told:
        return Mending(case.name, "nothing", ())
    fixed = after = with_fixes(case.submission, found)
    edit = edits / f"{case.name}.diff"
    if edit.is_file():
        after = with_edit(fixed, edit.read_text(encoding="utf-8"))
    if after == case.submission:
        return Mending(case.name, "no words", told)
    left = left_over(judge(after, "second"))
    by = "fixes" if after == fixed else "words"
    return Mending(case.name, "flawed" if left else by, told, left)
