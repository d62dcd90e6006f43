"""The whole suite over one runtime, which is entered once and kept warm for all of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from grader.run.conformance.endings import EndingConformance
from grader.run.conformance.environment import EnvironmentConformance
from grader.run.conformance.outputs import OutputConformance
from grader.run.conformance.traces import TraceConformance
from grader.run.conformance.training import TrainingConformance
from grader.run.runtime import Runtime
from grader.run.script_runs import RunScript, run_script


class RuntimeConformance(
    TraceConformance, OutputConformance, TrainingConformance, EnvironmentConformance, EndingConformance
):
    """To be inherited by a class whose name begins with `Test`.

    Attributes:
        runtime_class: what is tested; made without arguments, as the grader makes it.
    """

    runtime_class: ClassVar[type[Runtime]]

    @pytest.fixture(scope="class")
    @classmethod
    def runtime(cls) -> Iterator[Runtime]:
        """The runtime, warm; the tests are skipped where it cannot run."""
        runtime = cls.runtime_class()
        test = runtime.self_test()
        if not test.usable:
            pytest.skip(f"runtime {runtime.name}: {test.reason}")
        with runtime:
            runtime.warm()
            yield runtime

    @pytest.fixture
    def run(self, runtime: Runtime, tmp_path: Path) -> RunScript:
        """`run(script, nproc_per_node=…, limits=…, seed=…, launcher=…, probe=…, argv=…)` gives a `ScriptRun`."""
        return lambda script, **options: run_script(runtime, tmp_path, script, **options)
