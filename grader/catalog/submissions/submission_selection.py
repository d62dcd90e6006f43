"""Which of the tasks' own submissions to judge: by name, by what has changed, and one machine's share of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from grader.catalog.submissions.changes import Changes, changes_since
from grader.catalog.submissions.patches import SUFFIX
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import UsageError
from grader.model.promise import PromisedSubmission
from grader.model.task import Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VerifyShard:
    """One of `count` machines that share the work; `number` counts from 1."""

    number: int
    count: int

    def part(self, items: Sequence[T]) -> tuple[T, ...]:
        """Every `count`-th item. All shards together have each item once, and their sizes differ by one at most.

        Dealing out in turn mixes what stands side by side: a name starts with the verdict, and deadlocks take long.
        """
        return tuple(items[self.number - 1 :: self.count])


def parse_shard(text: str) -> VerifyShard:
    """`2/4` as a shard.

    Raises:
        UsageError: it is not of that form, or there is no such shard.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        raise UsageError(f"--shard {text}: give it as I/N, such as 2/4 for the second of four")
    shard = VerifyShard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.count:
        raise UsageError(f"--shard {text}: of {shard.count} shards, I goes from 1 to {max(shard.count, 1)}")
    return shard


def find_promised(promises: Iterable[PromisedSubmission], wanted: str) -> PromisedSubmission:
    """The one that somebody typed: its name, its file's or its path; without the verdict where no other is called so.

    Raises:
        UsageError: there is none, or there are several.
    """
    promises = tuple(promises)
    name = named((p.name for p in promises), wanted)
    return next(p for p in promises if p.name == name)


def named(names: Iterable[str], wanted: str) -> str:
    """The name `<verdict>/<stem>` that is meant; raises as `find_promised` does."""
    path = PurePath(wanted)
    stem = path.stem if path.suffix in {".py", SUFFIX} else path.name
    whole = f"{path.parent.name}/{stem}"
    known = sorted(names)
    found = [name for name in known if name == whole or (name.endswith(f"/{stem}") and not path.parent.name)]
    if len(found) == 1:
        return found[0]
    close = found or difflib.get_close_matches(whole.lstrip("/"), known, n=3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise UsageError(f"there is no one submission {wanted!r} here; `grader tasks TASK` lists them.{hint}")


def select(
    tasks: Iterable[Task],
    *,
    only: str | None = None,
    changes: Changes | None = None,
    shard: VerifyShard | None = None,
) -> tuple[tuple[Task, PromisedSubmission], ...]:
    """The submissions to judge, sorted by task and name.

    Args:
        tasks: whose submissions.
        only: keep those whose path below the task's folder contains this text.
        changes: keep those whose outcome these may change.
        shard: keep this share of what is left.

    Raises:
        UsageError: no submission's path contains `only`. That nothing changed, or nothing is left for a shard, is an
            answer and no mistake.
        TaskError: a task has a mistake.
    """
    named = [
        (task, promised)
        for task in sorted(tasks, key=lambda t: t.name)
        for promised in submissions_of(task)
        if only is None or only in promised.path.relative_to(task.folder).as_posix()
    ]
    if not named:
        raise UsageError(f"no submission matches --only {only!r}; `grader tasks TASK` lists them")
    left = [pair for pair in named if changes is None or changes.touch(*pair)]
    return tuple(left) if shard is None else shard.part(left)


def load_selected(
    names: Iterable[str],
    *,
    only: str | None = None,
    changed_since: str | None = None,
    shard: VerifyShard | None = None,
) -> tuple[tuple[Task, PromisedSubmission], ...]:
    """The same for tasks by name, all where none is named, and changes since a git revision.

    Raises:
        UsageError: unknown task or revision, or no submission has such a name.
        TaskError: a task has a mistake.
    """
    tasks = [load_task(name) for name in tuple(names) or find_tasks()]
    changes = changes_since(changed_since) if changed_since is not None else None
    return select(tasks, only=only, changes=changes, shard=shard)
