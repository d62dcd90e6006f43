"""Results on standard output, as text for people or JSON for programs; decides nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from grader.doctor import Checkup
    from grader.judging.attempt import Attempt
    from grader.model.calibration import Calibration
    from grader.model.dataset import PreparedDataset
    from grader.model.promise import PromisedSubmission
    from grader.model.task import Profile, Task
    from grader.promises.demo import DemoStep
    from grader.run.workspace import Workspace


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def stdout_console() -> Console:
    """A console on standard output; plain where that is no terminal."""
    from grader.cli.console import OutputConsole

    return OutputConsole(file=sys.stdout, emoji=False, highlight=False, soft_wrap=False)


def print_grade(attempt: Attempt, workspace: Workspace, *, as_json: bool, staff: bool) -> None:
    """One judged attempt."""
    from grader.checks.rule_failures import parted
    from grader.report.audience import Audience

    audience = Audience.STAFF if staff else Audience.LEARNER
    # Who judges here may well have written the rule that failed; a learner's page says no such thing.
    for failure in parted(attempt.grade.findings)[1]:
        print(f"grader: {failure.message}", file=sys.stderr)
    if as_json:
        from grader.report.json_report import to_json

        sys.stdout.write(to_json(attempt.grade, audience=audience))
        return
    from grader.report.terminal.attempt_text import print_attempt

    console = stdout_console()
    print_attempt(attempt, console, audience=audience)
    console.print(f"\nreport    {workspace.report}", soft_wrap=True)
    console.print(f"evidence  {workspace.root}", soft_wrap=True)


def task_to_json(task: Task) -> dict[str, Any]:
    """A task's facts for programs."""
    from grader.catalog.submissions.promised_submissions import submissions_of

    return {
        "name": task.name,
        "title": task.title,
        "lab": task.lab,
        "summary": task.summary,
        "version": task.version,
        "datasets": list(task.datasets),
        "profiles": [asdict(p) for p in task.profiles],
        "targets": [asdict(t) for t in task.targets],
        "rubric": [asdict(item) for item in task.rubric],
        "max_points": 100,
        "scales": {profile.name: _scale_to_json(task, profile) for profile in task.profiles},
        "submissions": [promise_to_json(promised) for promised in submissions_of(task)],
    }


def _scale_to_json(task: Task, profile: Profile) -> list[dict[str, Any]]:
    from grader.evaluate.points.scale import ScaleConditions, scale

    return [
        {"id": scaled.item.id, "points": scaled.points, "left_out": scaled.left_out}
        for scaled in scale(task, ScaleConditions.planned(task, profile))
    ]


def promise_to_json(promised: PromisedSubmission) -> dict[str, Any]:
    """What one of a task's own submissions promises, for programs."""
    return {
        "path": str(promised.path),
        "name": promised.name,
        "verdict": promised.verdict,
        "codes": list(promised.codes),
        "points": promised.points,
        "base": str(promised.base) if promised.base is not None else None,
    }


def print_task(task: Task, statement: str) -> None:
    """One task: statement (in any language), rubric, targets, and the submissions that prove it."""
    from rich.markdown import Markdown
    from rich.table import Table

    from grader.catalog.submissions.promised_submissions import submissions_of
    from grader.evaluate.points.scale import ScaleConditions, scale
    from grader.model.start_command import start_command

    console = stdout_console()
    console.print(Markdown(statement))
    for profile in task.profiles:
        ranks = (profile.nproc_per_node, profile.nnodes)
        command = start_command(task.launcher, task.entry_point, profile.arguments, *ranks)
        console.print(f"started on {profile.name} as  {command}", soft_wrap=True, markup=False)
    console.print()
    rubric = Table(title="Rubric", title_justify="left", box=None, pad_edge=False)
    scales = {p.name: scale(task, ScaleConditions.planned(task, p)) for p in task.profiles}
    # Where something is left out, the others are worth more: each such profile has a column of its own.
    scales = {name: items for name, items in scales.items() if any(scaled.left_out for scaled in items)}
    for heading in ("points", *(f"on {name}" for name in scales), "item", "needs"):
        rubric.add_column(heading)
    for number, item in enumerate(task.rubric):
        here = (items[number] for items in scales.values())
        worth = ("–" if scaled.left_out else f"{scaled.points:g}" for scaled in here)
        measured = (_asked(task, item.metric),) if item.metric else ()
        answered = (f"{item.answer} answer",) if item.answer else ()
        needs = " ".join((*item.requires, *measured, *answered))
        rubric.add_row(f"{item.points:g}", *worth, item.title + (" (must)" if item.must else ""), needs)
    console.print(rubric)
    for name, items in scales.items():
        for scaled in items:
            if scaled.left_out:
                console.print(
                    f"On {name}, “{scaled.item.title}” is left out, and the others share its points: {scaled.left_out}"
                )
    proofs = Table(title="\nSubmissions that prove the task", title_justify="left", box=None, pad_edge=False)
    for heading in ("verdict", "submission", "points", "codes"):
        proofs.add_column(heading)
    for promised in submissions_of(task):
        points = "–".join(f"{p:g}" for p in dict.fromkeys(promised.points or ()))
        proofs.add_row(promised.verdict, promised.name, points, " ".join(promised.codes))
    console.print(proofs)
    for profile in task.profiles:
        if profile.quoted:
            console.print(_quoted_table(profile))
    console.print(f"\nskeleton  {task.skeleton / task.entry_point}", soft_wrap=True)


def _asked(task: Task, name: str) -> str:
    """A metric and what it has to reach."""
    metric, target = task.metric(name), task.target(name)
    title = metric.title if metric is not None else name
    return f"{title} {task.asked(target)}" if target is not None else title


def _quoted_table(profile: Profile) -> Table:
    from rich.table import Table

    table = Table(
        title=f"\nPublished for such machines ({profile.name}); shown, never compared with times measured here",
        title_justify="left", box=None, pad_edge=False,
    )  # fmt: skip
    for heading in ("figure", "covers", "source"):
        table.add_column(heading)
    for quoted in profile.quoted:
        table.add_row(quoted.figure, quoted.covers, quoted.source)
    return table


def print_calibration(calibration: Calibration, task: Task, path: Path, *, as_json: bool) -> None:
    """A calibration of a task, style by style."""
    if as_json:
        emit_json({"schema": 1, "file": str(path), **asdict(calibration)})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("style", "median", "runs", *(metric.title for metric in task.metrics)):
        table.add_column(heading)
    for style in calibration.styles:
        runs = " ".join(f"{s:.2f}" for s in style.seconds)
        scores = (" ".join(map(m.text, style.scores.get(m.name, ()))) for m in task.metrics)
        table.add_row(style.submission, f"{style.median_s:.2f} s", runs, *scores)
    console = stdout_console()
    console.print(table)
    console.print(
        f"node class {calibration.node_class}, launcher {calibration.launcher}, load {calibration.load:.1f}, "
        f"stored in {path}",
        soft_wrap=True,
    )
    if calibration.first_run_s is not None:
        console.print(f"the first run took {calibration.first_run_s:.2f} s, and counts for nothing")
    if calibration.busy:
        console.print(
            "[yellow]The machine was busy during most runs:[/yellow] measure again with nothing beside it."
        )


def print_diagnoses(diagnoses: Sequence[Checkup], *, as_json: bool) -> None:
    """What the doctor found."""
    if as_json:
        emit_json([asdict(d) for d in diagnoses])
        return
    from grader.cli.rows import mark, print_rows

    rows = [(mark(d.ok or (False if d.needed else None)), d.what, d.found, d.remedy) for d in diagnoses]
    print_rows(stdout_console(), [""] * 4, rows)


def print_datasets(
    found: Sequence[PreparedDataset | None],
    *,
    as_json: bool,
    names: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> None:
    """Prepared data sets; None stands for one that is not, named in `names` with what prepares it in `commands`."""
    if as_json:
        emit_json(
            [
                asdict(d) if d else {"name": n, "prepared": False}
                for n, d in zip(names or [""] * len(found), found, strict=True)
            ]
        )
        return
    console = stdout_console()
    for number, dataset in enumerate(found):
        if dataset is None:
            console.print(f"{names[number]}: not prepared (`{commands[number]}`)", soft_wrap=True)
        else:
            console.print(f"{dataset.name}: {dataset.sizes} in {dataset.visible_dir}", soft_wrap=True)


def print_demo(step: DemoStep) -> None:
    """One step of the demo: what it was, and what the judge says of it."""
    from grader.report.terminal.attempt_text import print_attempt

    console = stdout_console()
    console.rule(step.promised.name)
    print_attempt(step.attempt, console)
    console.print(f"\nHTML report  {step.workspace.report}\n", soft_wrap=True)


def print_reports(steps: Sequence[DemoStep]) -> None:
    """Last of the demo: what became of each, and where its report is."""
    from grader.model.attempt_result import AttemptResult
    from grader.report.words.banner import sentence

    console = stdout_console()
    console.rule("reports to open in a browser")
    for step in steps:
        result = sentence(AttemptResult.of(step.attempt.grade))
        console.print(f"{step.promised.name}  {result}\n  {step.workspace.report}", soft_wrap=True)
