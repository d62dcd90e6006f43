"""M10: promises of all submissions, repeatedly; accepted ones over and over, half beside a busy neighbour."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from grader.catalog import find_tasks, load_task, submissions_of
from grader.model.grade import Verdict
from grader.model.verify_case import VerifyCase
from grader.pipeline import Options
from grader.verify import verify
from tests.bench.figures import Figure

_BUSY = "import torch; torch.set_num_threads(1); a = torch.randn(600, 600)\nwhile True: a = torch.tanh(a @ a)"


def _say(case: VerifyCase) -> None:
    if not case.ok:
        print(f"  {case.task}/{case.submission}: {case.message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """One busy process per core, as another user's training would be."""
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _accepted_runs(at_least: int) -> list[VerifyCase]:
    """Accepted submissions of all tasks in turn, each judged equally often, `at_least` runs in all."""
    num_accepted = sum(
        p.verdict == Verdict.ACCEPTED.value for name in find_tasks() for p in submissions_of(load_task(name))
    )
    repeat = -(-at_least // num_accepted)
    return list(verify((), Options(), lambda _: None, _say, only="submissions/accepted/", repeat=repeat))


def measure_judgement(runs: int) -> Iterator[Figure]:
    """All promises `runs / 4` times; `15 runs` accepted attempts, the second half beside a busy neighbour."""
    repeats = max(1, runs // 4)
    cases = list(verify((), Options(), lambda _: None, _say, repeat=repeats))
    broken = [0.0 if case.ok else 1.0 for case in cases]
    yield Figure.of(
        "M10", f"promises broken in {len(cases)} runs, all {repeats} times", "runs", 0, _summed(broken)
    )
    half = 15 * runs // 2
    for setting, context in (
        ("alone", contextlib.nullcontext()),
        ("beside a busy neighbour", neighbour()),
    ):
        with context:
            cases = _accepted_runs(half)
        lost = [0.0 if case.verdict == Verdict.ACCEPTED.value else 1.0 for case in cases]
        yield Figure.of("M10", f"accepted runs not accepted, {len(lost)} {setting}", "runs", 0, _summed(lost))


def _summed(values: list[float]) -> list[float]:
    # One number: a median over runs would hide a single failure.
    return [sum(values)]
