"""Real runtimes, kept warm for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.run.registry import find_runtimes, open_runtime
from grader.run.runtime import Runtime
from tests.run.lacking import may_lack_apptainer
from tests.run.running import Run, run_in


def _every_runtime() -> Iterator[object]:
    """Their names; one whose program not every system's archive carries may be absent even where all is required."""
    for name in sorted(find_runtimes()):
        absent = name == "apptainer" and may_lack_apptainer()
        yield pytest.param(name, marks=pytest.mark.apptainer) if absent else name


@pytest.fixture(scope="session", params=list(_every_runtime()))
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """Every runtime that this machine can run, warm."""
    one = open_runtime(request.param)
    test = one.self_test()
    if not test.usable:
        pytest.skip(f"runtime {request.param}: {test.reason}")
    with one:
        one.warm()
        yield one


@pytest.fixture
def run(runtime: Runtime, tmp_path: Path) -> Run:
    """`run(script, nproc_per_node=…, limits=…, seed=…, launcher=…, probe=…, argv=…)` gives a `Ran`."""
    return lambda script, **options: run_in(runtime, tmp_path, script, **options)
