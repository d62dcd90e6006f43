"""The runtimes that come with the grader keep what runtimes promise; the suite ships in the package for others, too."""

from __future__ import annotations

import pytest

from grader.run.conformance import RuntimeConformance
from grader.run.runtimes.apptainer import ApptainerRuntime
from grader.run.runtimes.docker import DockerRuntime
from grader.run.runtimes.process import ProcessRuntime
from tests.run.apptainer_absence import MAY_BE_ABSENT

pytestmark = pytest.mark.slow


class TestProcess(RuntimeConformance):
    runtime_class = ProcessRuntime


class TestDocker(RuntimeConformance):
    runtime_class = DockerRuntime


class TestApptainer(RuntimeConformance):
    runtime_class = ApptainerRuntime
    pytestmark = MAY_BE_ABSENT
