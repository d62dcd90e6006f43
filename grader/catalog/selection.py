"""Which of the tasks' own submissions to judge: by name, by what has changed, and one machine's share of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grader.catalog.changes import Changes
from grader.catalog.promises import submissions_of
from grader.errors import UsageError
from grader.model.promise import PromisedSubmission
from grader.model.task import Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` machines that share the work; `number` counts from 1."""

    number: int
    count: int

    def part(self, items: Sequence[T]) -> tuple[T, ...]:
        """Every `count`-th item. All shards together have each item once, and their sizes differ by one at most.

        Dealing out in turn mixes what stands side by side: a name starts with the verdict, and deadlocks take long.
        """
        return tuple(items[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """`2/4` as a shard.

    Raises:
        UsageError: it is not of that form, or there is no such shard.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        raise UsageError(f"--shard {text}: give it as I/N, such as 2/4 for the second of four")
    shard = Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.count:
        raise UsageError(f"--shard {text}: of {shard.count} shards, I goes from 1 to {max(shard.count, 1)}")
    return shard


def select(
    tasks: Iterable[Task],
    *,
    only: str | None = None,
    changes: Changes | None = None,
    shard: Shard | None = None,
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
