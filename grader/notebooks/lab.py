"""A task as a notebook to work in: what is asked, the skeleton to change, and cells that read, judge and hand in.

The cells only write files and call commands: a run on several ranks needs processes of its own, which no notebook's
kernel is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.model.task import Task

_MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}


def lab_notebook(task: Task, statement: str, service: str = "") -> str:
    """The notebook's file, format 4.5.

    Args:
        task: whose lab it is.
        statement: what is asked, in the reader's language.
        service: address of the one that gives it out: its learners may have a client alone, and no task.
    """
    script = task.entry_point
    modules = sorted(task.skeleton.rglob("*.py"), key=lambda path: (path.name != script, path))
    cells = [
        _statement(task, statement),
        _text(
            "how-to",
            f"## Work here\n\nRun the next cell (Shift+Enter): it writes `{script}` and trains nothing yet. Ranks are "
            "processes of their own, started by `torchrun`, so the script runs from the cells further below. After "
            "each change, run its cell again first.\n\n"
            f"What a report calls `{script}:12` is line 13 of that cell: its first line is the one with "
            "`%%writefile`. Of a notebook that you hand in itself it tells *cell 3, line 13*; cells are counted from "
            "the top, those with text among them.",
        ),
        *(
            _code(f"script-{number}", f"%%writefile {path.relative_to(task.skeleton).as_posix()}", path)
            for number, path in enumerate(modules, start=1)
        ),
        *(_asked_there(task, service) if service else _read_here(task)),
        _text(
            "judging",
            "## Try it\n\nA real run on several ranks of this machine, judged as it will be when you hand it in. It "
            'takes the whole grader (`pip install "ddp-grader[judge]"`) and the course\'s folder.',
        ),
        _code("grade", f"!grader grade {task.name} {script}"),
        _text(
            "submitting",
            f"## Hand it in\n\n{'' if service else _signing_in('ADDRESS') + ' '}You may also hand in this notebook "
            "itself on the task's page; save it first.",
        ),
        _code("submit", f"!grader submit {task.name} {script} --wait"),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _read_here(task: Task) -> list[dict[str, Any]]:
    return [
        _text("reading", "## Read it\n\nAt once, without a run: what is asked for and not there yet."),
        _code("lint", f"!grader lint --task {task.name} {task.entry_point}"),
    ]


def _asked_there(task: Task, service: str) -> list[dict[str, Any]]:
    return [
        _text("reading", "## Read it\n\nAt once, without a run: faults that show in the text."),
        _code("lint", f"!grader lint {task.entry_point}"),
        _text(
            "asking",
            f"What the task asks for and is not there yet. This asks the service, and hands nothing in. "
            f"{_signing_in(service)}",
        ),
        _code("check", f"!grader submit {task.name} {task.entry_point} --check"),
    ]


def _signing_in(address: str) -> str:
    return f"Sign in once, in a terminal (File, New, Terminal): `grader login {address}`."


def _statement(task: Task, text: str) -> dict[str, Any]:
    """The statement with its figures inside: nothing lies beside a notebook."""
    attached = {}
    folder = task.folder / "figures"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix in _MEDIA and f"figures/{path.name})" in text:
            text = text.replace(f"(./figures/{path.name})", f"(figures/{path.name})")
            text = text.replace(f"(figures/{path.name})", f"(attachment:{path.name})")
            attached[path.name] = {_MEDIA[path.suffix]: base64.b64encode(path.read_bytes()).decode()}
    cell = _text("statement", text.strip())
    return cell | ({"attachments": attached} if attached else {})


def _text(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(text)}


def _code(name: str, first: str, script: Path | None = None) -> dict[str, Any]:
    text = first if script is None else f"{first}\n{script.read_text(encoding='utf-8').rstrip()}"
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> Sequence[str]:
    return text.splitlines(keepends=True)
