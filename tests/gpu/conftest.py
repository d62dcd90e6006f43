"""What the tests on a real GPU share: runs of learners' scripts on it, and a folder that keeps what they left.

`make test-gpu` runs them; elsewhere they are skipped. Nothing here is imitated: scripts go through the process runtime
or `grader grade`, and what cannot be seen otherwise is asked of NVIDIA's own tools. The recordings are what tests on
machines without a GPU are made of afterwards.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from grader.model.trace import Trace
from grader.run.registry import open_runtime
from grader.run.runtime import Runtime
from grader.run.script_runs import LIMITS, ScriptRun, run_script
from grader.run.trace_reader import read_trace
from tests.gpu.scripts import REDUCE, SHARING

_DRIVER = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_GRADE_S = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--gpu-recordings",
        default="build/gpu",
        metavar="DIR",
        help="where tests on a GPU keep what runs left",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    absent = pytest.mark.skip(reason="no NVIDIA GPU here: there is neither /dev/nvidiactl nor /dev/dxg")
    for item in items:
        if item.path.parent == here and item.path.stem != "test_scripts_on_cpu":
            item.add_marker(pytest.mark.gpu)
            if not any(path.exists() for path in _DRIVER):
                item.add_marker(absent)


@pytest.fixture
def recordings(request: pytest.FixtureRequest) -> Path:
    """Folder of this test's own, kept after it."""
    root = Path(request.config.getoption("--gpu-recordings", default="build/gpu"))
    folder = request.config.rootpath / root / re.sub(r"[^\w.-]+", "-", request.node.name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def runtime() -> Generator[Runtime, None, None]:
    """The process runtime, with torch imported."""
    with open_runtime("process") as runtime:
        runtime.warm()
        yield runtime


@dataclass(frozen=True)
class GpuRun:
    """A run that is over: as the runtime's record has it, and as its ranks told."""

    ran: ScriptRun
    trace: Trace
    facts: dict[str, Any]

    def told(self, rank: int = 0) -> Any:
        """The last line that a rank printed, as JSON."""
        return json.loads(self.ran.out(rank).splitlines()[-1])

    @property
    def words(self) -> str:
        """What all ranks complained of."""
        return "".join(self.ran.err(rank) for rank in range(len(self.trace.ranks)))

    @property
    def unsupported(self) -> list[str]:
        """Hooks of the probe that broke."""
        return [e.fields["reason"] for rank in self.trace.ranks for e in rank.events("unsupported")]


RunOnGpu = Callable[..., GpuRun]


@pytest.fixture
def run(runtime: Runtime, tmp_path: Path, recordings: Path) -> RunOnGpu:
    """Run a script's text: `run(text, nproc=1, gpus=1, probe=True, wall_s=120)`; all ranks share the leased GPUs."""

    def once(
        text: str, *, nproc: int = 1, gpus: int = 1, probe: bool = True, wall_s: float = 120.0
    ) -> GpuRun:
        # Contexts, libraries and page-locked memory count as the host's, too.
        limits = replace(LIMITS, wall_s=wall_s, memory_bytes=nproc * (12 << 30), output_bytes=1 << 28)
        ran = run_script(
            runtime, tmp_path, text, nproc_per_node=nproc, gpus_per_node=gpus, probe=probe, limits=limits
        )  # fmt: skip
        return recorded(ran, nproc, recordings)

    return once


def recorded(ran: ScriptRun, nproc: int, folder: Path) -> GpuRun:
    """Read what a run left, and keep a copy of it."""
    text = ran.workspace.record.read_text()
    number = len(list(folder.glob("record*.json")))
    (folder / f"record{number}.json").write_text(text)
    for rank in range(nproc):
        for stream in ("out", "err"):
            (folder / f"run{number}.rank{rank}.{stream}").write_text(
                ran.workspace.log(rank, stream).read_text()
            )
    return GpuRun(ran, read_trace([ran.workspace.trace(rank) for rank in range(nproc)]), json.loads(text))


Grader = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with digits, where calibrations are kept from test to test; all workers' leases are there."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "state"
    subprocess.run(
        [sys.executable, "-m", "grader", "data", "prepare", "digits"],
        env={**os.environ, "GRADER_STATE_DIR": str(folder)},
        stdout=subprocess.DEVNULL,
        timeout=_GRADE_S,
        check=True,
    )
    return folder


@pytest.fixture
def grader(recordings: Path, state: Path) -> Grader:
    """Call the command line: exit code, and what it said as JSON, with what it said beside that under `beside`.

    `changes` are variables of its environment.
    """

    def call(*arguments: str, **changes: str) -> tuple[int, dict[str, Any]]:
        ended = subprocess.run(
            [sys.executable, "-m", "grader", *arguments, "--json"],
            env={**os.environ, "GRADER_STATE_DIR": str(state), **changes},
            capture_output=True,
            text=True,
            timeout=_GRADE_S,
            check=False,
        )
        number = len(list(recordings.glob("grader*.json")))
        (recordings / f"grader{number}.json").write_text(ended.stdout)
        (recordings / f"grader{number}.err").write_text(ended.stderr)
        told = json.loads(ended.stdout) if ended.stdout.strip() else {}
        told = told if isinstance(told, dict) else {}
        return ended.returncode, {**told, "beside": ended.stderr + ended.stdout}

    return call


def smi(*fields: str) -> list[list[str]]:
    """NVIDIA's own tool: the asked fields of each GPU."""
    text = subprocess.run(
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="session")
def sharing(
    runtime: Runtime, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> str:
    """First lines of a script whose ranks share one GPU under NCCL, as this NCCL allows it.

    NCCL from 2.30 on has a switch. To an older one each rank says that it is on a host of its own, so that it does not
    notice; what it sends goes by the loopback interface.
    """
    root = Path(request.config.getoption("--gpu-recordings", default="build/gpu"))
    folder = request.config.rootpath / root / "sharing"
    folder.mkdir(parents=True, exist_ok=True)
    for way in SHARING:
        limits = replace(LIMITS, wall_s=60.0, memory_bytes=24 << 30)
        ran = run_script(
            runtime, tmp_path_factory.mktemp("sharing"), way + REDUCE, nproc_per_node=2, gpus_per_node=1, limits=limits
        )  # fmt: skip
        tried = recorded(ran, 2, folder)
        if ran.exit_codes == [0, 0] and tried.told() == 3.0:
            return way
    pytest.xfail(f"this NCCL runs no two ranks on one GPU; its words are kept in {folder}")
