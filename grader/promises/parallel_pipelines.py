"""Several pipelines side by side, for those who have many submissions to judge and no need of a quiet machine.

Most of a deadlock's time is waiting, and most of a short run's is starting and scoring: another submission can use it.
What a clock decides about is judged alone, after the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from grader.errors import UsageError
from grader.pipeline import OnProgress, Pipeline
from grader.run.runtime import Progress

T = TypeVar("T")
R = TypeVar("R")

MAX_JOBS = 64


class _OverError(Exception):
    """Somebody else has failed or was told to stop: this pipeline ends its run and says nothing."""


def check_jobs(jobs: int) -> int:
    """The number of pipelines, if it is one.

    Raises:
        UsageError: it is not.
    """
    if not 1 <= jobs <= MAX_JOBS:
        raise UsageError(f"--jobs {jobs}: give a number from 1 to {MAX_JOBS}")
    return jobs


def side_by_side(
    items: Sequence[T],
    work: Callable[[Pipeline, T, OnProgress], R],
    *,
    runtime: str | None,
    jobs: int,
    alone: Callable[[T], bool],
    on_progress: OnProgress,
    on_done: Callable[[R], None],
) -> tuple[R, ...]:
    """Do the work on every item, on as many pipelines as there are jobs; pipelines start when there is something to do.

    Args:
        items: what to work on. work: does one, on the pipeline that it is given, and tells its signs of life.
        runtime: of the pipelines. jobs: items at a time; 1 keeps the order of the items.
        alone: whether nothing may run beside an item.
        on_progress: told signs of life. on_done: told each result, one at a time, as soon as it is there.

    Returns:
        Results in the order of the items.

    Raises:
        Whatever the work raised first; every pipeline has ended its processes by then.
    """
    results: dict[int, R] = {}
    telling = threading.Lock()

    def do(numbers: Iterable[int], on_sign: OnProgress) -> None:
        with Pipeline(runtime) as pipeline:
            for number in numbers:
                result = work(pipeline, items[number], on_sign)
                with telling:
                    results[number] = result
                    on_done(result)

    together = [n for n, item in enumerate(items) if jobs > 1 and not alone(item)]
    if together:
        _in_parallel(together, min(jobs, len(together)), do, on_progress)
    if in_turn := sorted(set(range(len(items))) - set(together)):
        do(in_turn, on_progress)
    return tuple(results[n] for n in range(len(items)))


def _in_parallel(
    numbers: Sequence[int],
    jobs: int,
    do: Callable[[Iterable[int], OnProgress], None],
    on_progress: OnProgress,
) -> None:
    turns = iter(numbers)
    taking, over = threading.Lock(), threading.Event()

    def mine() -> Iterator[int]:
        while not over.is_set():
            with taking:
                number = next(turns, None)
            if number is None:
                return
            yield number

    def forward(sign: Progress) -> None:
        if over.is_set():
            raise _OverError
        # Phases of several runs at once would say nothing.
        with taking:
            on_progress(
                replace(sign, phase=f"judge {jobs} at once", elapsed_s=0.0, steps=(), line="", printed=())
            )

    with ThreadPoolExecutor(jobs, thread_name_prefix="pipeline") as pool:
        running = [pool.submit(do, mine(), forward) for _ in range(jobs)]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
    for done in running:
        error = done.exception()
        if error is not None and not isinstance(error, _OverError):
            raise error
