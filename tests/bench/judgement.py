"""M10: promises of all submissions, repeatedly, more than half of the runs beside a busy neighbour."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from grader.catalog.submissions.submission_selection import load_selected
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.model.grade import Verdict
from grader.model.verify_case import VerifyCase
from grader.promises.verification import Verification, verify
from tests.bench.figures import Figure

_BUSY = "import torch; torch.set_num_threads(1); a = torch.randn(600, 600)\nwhile True: a = torch.tanh(a @ a)"


def _report(case: VerifyCase) -> None:
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


def measure_judgement(runs: int) -> Iterator[Figure]:
    """All promises `runs / 4` times, more than half beside a busy neighbour; accepted ones are looked at apart."""
    repeats = max(2, runs // 4)
    counted, broken, accepted, lost = 0, 0, 0, 0
    for setting, times, context in (
        ("alone", repeats // 2, contextlib.nullcontext()),
        ("beside a busy neighbour", repeats - repeats // 2, neighbour()),
    ):
        with context:
            cases = [case for _ in range(times) for case in _every_promise()]
        sound = [case for case in cases if case.expected_verdict == Verdict.ACCEPTED.value]
        not_accepted = sum(case.verdict != Verdict.ACCEPTED.value for case in sound)
        yield Figure.of(
            "M10", f"accepted runs not accepted, {len(sound)} {setting}", "runs", 0, [float(not_accepted)]
        )
        counted, broken = counted + len(cases), broken + sum(not case.ok for case in cases)
        accepted, lost = accepted + len(sound), lost + not_accepted
    # One number each: a median over runs would hide a single failure.
    yield Figure.of(
        "M10", f"promises broken in {counted} runs, all {repeats} times", "runs", 0, [float(broken)]
    )
    yield Figure.of("M10", f"accepted runs not accepted, {accepted} in all", "runs", 0, [float(lost)])


def _every_promise() -> Iterator[VerifyCase]:
    """Each submission of each task judged once, where its task can be run; those that a clock decides about alone."""
    several = [name for name in find_tasks() if load_task(name).profiles[0].nnodes > 1]
    single = [name for name in find_tasks() if name not in several]
    for runtime, names in (("process", single), ("docker", several)):
        how = Verification(runtime=runtime, jobs=2)
        cases = verify(load_selected(names), how, lambda _: None, _report)
        yield from (case for case in cases if not case.skipped)
