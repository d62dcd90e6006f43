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
from grader.pipeline import Options, Pipeline
from grader.run.runtime import Progress

T = TypeVar("T")
R = TypeVar("R")

MOST = 64


class _OverError(Exception):
    """Somebody else has failed or was told to stop: this lane ends its run and says nothing."""


def check_jobs(jobs: int) -> int:
    """The number of lanes, if it is one.

    Raises:
        UsageError: it is not.
    """
    if not 1 <= jobs <= MOST:
        raise UsageError(f"--jobs {jobs}: give a number from 1 to {MOST}")
    return jobs


def side_by_side(
    items: Sequence[T],
    work: Callable[[Pipeline, T], R],
    *,
    options: Options,
    jobs: int,
    alone: Callable[[T], bool],
    on_progress: Callable[[Progress], None],
    on_done: Callable[[R], None],
) -> tuple[R, ...]:
    """Do the work on every item, on as many pipelines as there are jobs; pipelines start when there is something to do.

    Args:
        items: what to work on. work: does one, on the pipeline that it is given.
        options: of the pipelines. jobs: items at a time; 1 keeps the order of the items.
        alone: whether nothing may run beside an item.
        on_progress: told signs of life. on_done: told each result, one at a time, as soon as it is there.

    Returns:
        Results in the order of the items.

    Raises:
        Whatever the work raised first; every lane has ended its processes by then.
    """
    results: dict[int, R] = {}
    telling = threading.Lock()

    def do(numbers: Iterable[int], on_sign: Callable[[Progress], None]) -> None:
        with Pipeline(options, on_sign) as pipeline:
            for number in numbers:
                result = work(pipeline, items[number])
                with telling:
                    results[number] = result
                    on_done(result)

    together = [n for n, item in enumerate(items) if jobs > 1 and not alone(item)]
    if together:
        _in_lanes(together, min(jobs, len(together)), do, on_progress)
    if in_turn := sorted(set(range(len(items))) - set(together)):
        do(in_turn, on_progress)
    return tuple(results[n] for n in range(len(items)))


def _in_lanes(
    numbers: Sequence[int],
    jobs: int,
    do: Callable[[Iterable[int], Callable[[Progress], None]], None],
    on_progress: Callable[[Progress], None],
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

    def told(sign: Progress) -> None:
        if over.is_set():
            raise _OverError
        # Phases of several runs at once would say nothing.
        with taking:
            on_progress(
                replace(sign, phase=f"judge {jobs} at once", elapsed_s=0.0, steps=(), line="", said=())
            )

    with ThreadPoolExecutor(jobs, thread_name_prefix="lane") as lanes:
        running = [lanes.submit(do, mine(), told) for _ in range(jobs)]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
    for lane in running:
        error = lane.exception()
        if error is not None and not isinstance(error, _OverError):
            raise error
