"""Real ranks for the probe's tests: each test's script runs in fresh processes with a pipe of its own per rank.

`GRADER_PROBE_PYTHON` is never read: another interpreter is given by the test that wants one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grader.model.trace import RankTrace, Trace
from grader.run.trace_reader import read_trace

REPOSITORY = Path(__file__).resolve().parents[2]

BOOTSTRAP = """
import os, random, sys, time
fd, origin, rank, script, output, probe = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:7]
import torch
torch.manual_seed(1000 + rank)
random.seed(1000 + rank)
folder = os.path.dirname(script)
sys.path[0:0] = [folder]
finish = lambda error: None
if probe == "on":
    from grader.probe.install import finish, install
    install(fd=fd, origin=origin, rank=rank, local_rank=rank, world_size=int(os.environ["WORLD_SIZE"]),
            seed=1000 + rank, submission_dir=folder, output_dir=output)
sys.argv = [script]
import __main__
with open(script) as file:
    code = compile(file.read(), script, "exec")
try:
    exec(code, vars(__main__))
except BaseException as error:
    finish(error)
    raise
finish(None)
"""


@dataclass
class Ran:
    """What came of a script."""

    trace: Trace
    exit_codes: list[int]
    stdout: list[str]
    stderr: list[str]
    output: Path
    traces: list[Path] = field(default_factory=list)

    @property
    def ranks(self) -> tuple[RankTrace, ...]:
        return self.trace.ranks


def run_script(
    text: str,
    folder: Path,
    *,
    nproc: int = 2,
    probe: bool = True,
    python: str = sys.executable,
    expect: int | None = 0,
    timeout_s: float = 110,
) -> Ran:
    """Run a script in `nproc` ranks and read their traces; `expect` is the exit code that all must have."""
    submission, output = folder / "submission", folder / "outputs"
    submission.mkdir(parents=True)
    output.mkdir()
    script = submission / "train.py"
    script.write_text(textwrap.dedent(text))
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        port = probe_socket.getsockname()[1]
    origin = time.monotonic()
    traces = [folder / f"rank{rank}.trace" for rank in range(nproc)]
    running, stampers = [], []
    for rank in range(nproc):
        reader, writer = os.pipe()
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(nproc),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "OUTPUT_DIR": str(output),
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONWARNINGS": "default",
        }
        arguments = [str(writer), str(origin), str(rank), str(script), str(output), "on" if probe else "off"]
        process = subprocess.Popen(
            [python, "-c", BOOTSTRAP, *arguments],
            env=environment,
            cwd=submission,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(writer,),
            text=True,
        )
        os.close(writer)
        stamper = threading.Thread(target=_stamp, args=(reader, traces[rank], origin))
        stamper.start()
        running.append(process)
        stampers.append(stamper)
    outputs = []
    try:
        outputs = [process.communicate(timeout=timeout_s) for process in running]
    finally:
        for process in running:
            process.kill()
        for stamper in stampers:
            stamper.join(timeout=10)
    codes = [process.returncode for process in running]
    if expect is not None and codes != [expect] * nproc:
        pytest.fail(f"exit codes {codes}\n" + "\n".join(err[-4000:] for _, err in outputs))
    return Ran(read_trace(traces), codes, [o for o, _ in outputs], [e for _, e in outputs], output, traces)


def _stamp(reader: int, path: Path, origin: float) -> None:
    with os.fdopen(reader, "rb") as lines, path.open("wb") as out:
        for line in lines:
            out.write(b"%.6f\t%s" % (time.monotonic() - origin, line))
            out.flush()


@pytest.fixture
def ranks(tmp_path: Path) -> Callable[..., Ran]:
    """Run a script's text in real ranks."""
    count = 0

    def run(text: str, **options: object) -> Ran:
        nonlocal count
        count += 1
        return run_script(text, tmp_path / f"run{count}", **options)  # type: ignore[arg-type]

    return run
