"""Where attempts lie on disk, and what was to be judged: making, naming and reading an attempt's folder.

Holds what judging again needs beside the evidence itself. Never runs or judges anything.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from dataclasses import asdict
from pathlib import Path

from grader.errors import UsageError
from grader.json_reader import read_json
from grader.model.attempt_facts import AttemptFacts
from grader.model.submission import Submission
from grader.run.workspace import Workspace
from grader.settings import settings


def new_attempt_name(submission: Submission) -> str:
    """A name that sorts by time and is never given twice."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{submission.digest[:8]}-{stamp}-{secrets.token_hex(3)}"


def check_out(out: Path) -> None:
    """Refuse a folder that is not ours to empty; asked before anything takes time.

    Raises:
        UsageError: `out` exists and is neither an empty folder nor an earlier attempt's.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out} is a file; --out takes a folder")
    if any(out.iterdir()) and not Workspace(out).attempt.is_file():
        raise UsageError(f"{out} holds other files; name a new or empty folder, or an earlier attempt's")


def new_workspace(task: str, submission: Submission, out: Path | None) -> Workspace:
    """An empty attempt folder: `out`, or a new one in the state folder.

    Raises:
        UsageError: `out` exists and is neither an empty folder nor an earlier attempt's.
    """
    if out is None:
        out = settings().state_dir / "attempts" / task / f"{submission.name}-{new_attempt_name(submission)}"
    check_out(out)
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    return Workspace(out.resolve())


def open_attempt(folder: Path) -> Workspace:
    """The stored attempt in a folder.

    Raises:
        UsageError: there is none.
    """
    workspace = Workspace(folder.resolve())
    if not workspace.attempt.is_file():
        raise UsageError(
            f"{folder} is not an attempt's folder: it has no attempt.json; `grader grade` names the folder it writes"
        )
    return workspace


def read_logs(workspace: Workspace, num_ranks: int) -> tuple[tuple[str, str], ...]:
    """Kept standard output and standard error of each rank; "" where there is none."""

    def text(rank: int, stream: str) -> str:
        try:
            return workspace.log(rank, stream).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    return tuple((text(rank, "out"), text(rank, "err")) for rank in range(num_ranks))


def write_facts(facts: AttemptFacts, workspace: Workspace) -> None:
    """Store what is to be judged, before anything runs."""
    workspace.attempt.write_text(
        json.dumps(asdict(facts), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read_facts(workspace: Workspace) -> AttemptFacts:
    """What was to be judged.

    Raises:
        UsageError: the file is damaged or of another version.
    """
    try:
        return read_json(AttemptFacts, workspace.attempt.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(
            f"{workspace.attempt} cannot be read ({error}); grade the submission again"
        ) from error
