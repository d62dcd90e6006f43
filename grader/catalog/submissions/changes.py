"""What has changed since a commit, as far as tasks are concerned: which of them, or which of their submissions.

Asks git and changes nothing. What is neither committed nor ignored counts as changed, so that the answer is right
before a commit, too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from grader.catalog.package_files import PACKAGE, judging_files, running_files
from grader.catalog.submissions.git_output import git_output
from grader.errors import UsageError
from grader.model.promise import PromisedSubmission
from grader.model.task import Task
from grader.plugins.sources import COURSE_FOLDERS, DIAGNOSES, RULES, RUNTIMES, foreign_files


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths that differ from a commit, absolute.

    Attributes:
        paths: files that were added, changed, moved or deleted.
        everything: the judge itself or the pinned packages are among them, so that any outcome may differ.
    """

    paths: frozenset[Path]
    everything: bool

    def touch(self, task: Task, promised: PromisedSubmission) -> bool:
        """Whether judging this submission may come to another outcome than before."""
        if self.everything:
            return True
        submissions = task.folder.resolve() / "submissions"
        own = [path.resolve() for path in (promised.path, promised.base) if path is not None]
        folders = (task.folder.resolve(), task.skeleton.resolve())
        return any(
            any(map(path.is_relative_to, own))
            or (any(map(path.is_relative_to, folders)) and not path.is_relative_to(submissions))
            for path in self.paths
        )


def changes_since(revision: str) -> Changes:
    """What differs between the working tree and the commit where it parted from `revision`.

    Raises:
        UsageError: the tasks do not lie in a git repository, or it does not know the revision.
    """
    from grader.settings import settings

    folder = settings().tasks_dir.resolve()
    inside = _git(folder, "rev-parse", "--show-toplevel")
    if inside is None:
        raise UsageError(
            f"--changed-since asks git, and {folder} is not in a git repository that may be read; leave the option away"
        )
    top = Path(os.fsdecode(inside).rstrip("\n")).resolve()
    commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise UsageError(
            f"--changed-since {revision}: git knows no such commit in {top}. Where only the newest commits were "
            "fetched, fetch the whole history (GitHub: `fetch-depth: 0`, GitLab: `GIT_DEPTH: 0`)"
        )
    since = commit.decode().strip()
    # What others did meanwhile is theirs; without a common ancestor everything that differs counts.
    parted = _git(top, "merge-base", since, "HEAD")
    since = parted.decode().split()[0] if parted and parted.strip() else since
    listed = _git(top, "diff", "--name-only", "--no-renames", "-z", since, "--")
    new = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    if listed is None or new is None:
        raise UsageError(f"--changed-since {revision}: git cannot compare the files in {top} with it")
    names = [os.fsdecode(name) for name in (listed + new).split(b"\0") if name]
    paths = frozenset(top / name for name in names)
    foreign = {path.resolve() for path in foreign_files(RULES, DIAGNOSES, RUNTIMES)}
    own_folders = [folder / name for name in COURSE_FOLDERS]
    deciding = running_files() | judging_files() | foreign
    everything = any(
        path in deciding
        # Deleted files decided something, perhaps.
        or (path.is_relative_to(PACKAGE) and path.suffix == ".py" and not path.exists())
        or any(map(path.is_relative_to, own_folders))
        or path.is_relative_to(top / "containers")
        or (path.parent == top and (path.suffix == ".lock" or path.name == "requirements.txt"))
        for path in paths
    )
    return Changes(paths, everything)


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        return git_output(folder, *arguments)
    except FileNotFoundError:
        raise UsageError("--changed-since asks git, which is not installed here") from None
