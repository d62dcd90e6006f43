"""A course and what was proved about it on standard output, as text for people or JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from grader.cli.printing import emit_json, stdout_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from grader.model.course import Course, CourseItem
    from grader.model.task import Task
    from grader.promises.course_proof import Proof


def print_tasks(tasks: Sequence[Task], course: Course | None) -> None:
    """All tasks, a line each: those of the course in its order, with what comes before them."""
    console = stdout_console()
    if course is not None:
        console.print(f"[bold]{course.title}[/bold]  ({course.path.name})", soft_wrap=True)
    profiles = {task.name: ", ".join(profile.name for profile in task.profiles) for task in tasks}
    same = len(set(profiles.values())) == 1
    table = _table("", "task", "title", "lab", "after", *(() if same else ("profiles",)))
    # What is to be typed is never cut.
    table.columns[1].no_wrap = True
    for number, task in enumerate(tasks, start=1):
        item = course.item(task.name) if course is not None else None
        table.add_row(
            f"{number}" if item is not None else "",
            task.name,
            task.title,
            task.lab,
            ", ".join(item.after) if item is not None else "",
            *(() if same else (profiles[task.name],)),
        )
    console.print(table)
    if same:
        console.print(f"\nEach can run with the profiles {next(iter(profiles.values()))}.", soft_wrap=True)


def place_to_json(course: Course | None, task: str) -> dict[str, Any] | None:
    """A task's place in the course for programs; None where it has none."""
    item = course.item(task) if course is not None else None
    if course is None or item is None:
        return None
    return {"name": course.name, "position": course.items.index(item) + 1, **_item_to_json(item)}


def print_course(course: Course, notes: Sequence[str], *, as_json: bool) -> None:
    """The order of a course, its terms, and what its author should know."""
    if as_json:
        emit_json({"schema": 1, **course_to_json(course), "notes": list(notes)})
        return
    console = stdout_console()
    console.print(f"[bold]{course.title}[/bold]  ({course.path.name})", soft_wrap=True)
    console.print(course.about.strip(), soft_wrap=True)
    table = _table("", "task", "weight", "certificate", "after", "opens", "due")
    for number, item in enumerate(course.items, start=1):
        table.add_row(
            str(number),
            item.task,
            f"{item.weight:g} %",
            "needs it" if item.required else "",
            ", ".join(item.after),
            span(item.opens),
            span(item.due) if item.due is not None else "never",
        )
    console.print(table)
    _print_notes(notes, console)


def course_to_json(course: Course) -> dict[str, Any]:
    """A course's facts for programs; spans of time in seconds."""
    return {
        "name": course.name,
        "title": course.title,
        "about": course.about,
        "file": str(course.path),
        "tasks": [_item_to_json(item) for item in course.items],
    }


def _item_to_json(item: CourseItem) -> dict[str, Any]:
    facts = asdict(item)
    opens, due = facts.pop("opens"), facts.pop("due")
    return facts | {
        "opens_s": opens.total_seconds(),
        "due_s": due.total_seconds() if due is not None else None,
    }


def span(time: timedelta) -> str:
    """A span of time as course files write it."""
    minutes = int(time.total_seconds()) // 60
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number) or "at once"


def print_proof(proof: Proof, *, as_json: bool) -> None:
    """What was proved: a line for each task, then everything that is wrong."""
    if as_json:
        emit_json(
            {
                "schema": 1,
                "ok": proof.ok,
                "course": course_to_json(proof.course),
                "problems": list(proof.problems),
                "unproved": list(proof.unproved),
                "notes": list(proof.notes),
                "seconds": proof.seconds,
                "cases": [{**asdict(case), "runtime": runtime} for runtime, case in proof.cases],
                "skeletons": [asdict(skeleton) for skeleton in proof.skeletons],
            }
        )
        return
    console = stdout_console()
    table = _table("", "task", "where", "kept", "skeleton", "time")
    for task, runtime in proof.places:
        cases = [c for r, c in proof.cases if c.task == task and r == runtime and not c.skipped]
        skeleton = next((s for s in proof.skeletons if s.task == task and s.runtime == runtime), None)
        kept = sum(c.ok for c in cases)
        fine = kept == len(cases) and (skeleton is None or not skeleton.problem)
        table.add_row(
            "[green]✓[/green]" if fine else "[red]✗[/red]",
            task,
            runtime,
            f"{kept} of {len(cases)}",
            skeleton.verdict if skeleton is not None else "",
            f"{sum(c.seconds for c in cases):.0f} s",
        )
    console.print(table)
    for problem in proof.problems:
        console.print("[red]✗[/red] ", end="")
        console.print(problem, markup=False, soft_wrap=True)
    _print_notes((*proof.unproved, *proof.notes), console)
    total = sum(proof.seconds.values())
    if not proof.ok:
        said = f"{len(proof.problems)} thing{'s' * (len(proof.problems) != 1)} to mend in {proof.course.path.name}"
    elif proof.unproved:
        said = f"{proof.course.path.name}: nothing wrong, and not all of it could be run here"
    else:
        said = f"{proof.course.path.name} is proved"
    console.print(f"{said} ({total / 60:.1f} minutes of runs)", soft_wrap=True)


def _print_notes(notes: Sequence[str], console: Console) -> None:
    for text in notes:
        console.print("[yellow]–[/yellow] ", end="")
        console.print(text, markup=False, soft_wrap=True)


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table
