"""A repository of a course to start from: one task that proves itself, and CI that proves it on every commit."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from grader import __version__
from grader.catalog.formats.starter_files import checked_title, copy_filled, written_whole
from grader.catalog.tasks.new_task import write_task

FIRST_TASK = "first-task"
WORKFLOWS = {"github": ".github/workflows/course.yml", "gitlab": ".gitlab-ci.yml"}
"""Host of CI → where a repository holds its workflow."""
REUSABLE = {"github-action": "action.yml", "gitlab-component": "component.yml"}
"""What others' workflows may use → its file: it hands one script in, or verifies a course."""


def new_course(name: str, title: str | None = None) -> Path:
    """Write a course of one task into a new folder of this name, here.

    Args:
        name: of its folder; title: what learners read first, the name in words by default.

    Raises:
        UsageError: the name is not spelled like a course's, the title holds a quote, or the folder is there.
        InfraError: the disk refuses.
    """
    title = checked_title("course", name, title)
    folder = Path.cwd() / name
    words = {"name": name, "title": title, "task": FIRST_TASK, "version": __version__}
    with written_whole(folder) as scratch:
        copy_filled(resources.files("grader.catalog") / "course_starter", scratch, words)
        # Packages hold no file whose name begins with a dot.
        (scratch / "gitignore").rename(scratch / ".gitignore")
        write_task(scratch / FIRST_TASK, "First task")
        for host, path in WORKFLOWS.items():
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).write_text(workflow(host), encoding="utf-8")
    return folder


def workflow(kind: str) -> str:
    """The workflow of a course's repository for a host of CI, or a reusable part of anybody's workflow there."""
    name = REUSABLE.get(kind, f"{kind}.yml")
    return (resources.files("grader") / "workflows" / name).read_text(encoding="utf-8")
