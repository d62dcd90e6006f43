"""Real ranks for the probe's tests: forked from a warm process, each with a pipe that is stamped as it is read."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.model.trace import Event, RankTrace
from grader.run.trace_reader import read_trace

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "MASTER_ADDR": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(REPOSITORY),
}
PREAMBLE = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import ConcatDataset, DataLoader, Dataset, DistributedSampler, Subset, TensorDataset, random_split
OUT = os.environ["OUTPUT_DIR"]
"""


@dataclass
class Ran:
    """What came of a script: one trace, exit code, standard output and error per rank."""

    ranks: tuple[RankTrace, ...]
    exit_codes: list[int]
    stdout: list[str]
    stderr: list[str]
    output: Path
    lines: list[list[dict[str, Any]]]

    def events(self, kind: str, rank: int = 0) -> tuple[Event, ...]:
        """Events of a kind without a record of its own."""
        return self.ranks[rank].events(kind)


class RankForker:
    """The warm process; `torch` is its version."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", "from tests.probe.rank_forker import main; main()"],
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.torch = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that forks ranks died"
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(
        self,
        text: str,
        folder: Path,
        *,
        nproc: int = 2,
        probe: bool = True,
        expect: int | None = 0,
        timeout_s: float = 60,
        lot: str = "",
    ) -> Ran:
        """Run a script after the usual imports; `expect` is the exit code that every rank must have.

        `lot`: decides which steps are looked at; "": nothing is drawn by lot.
        """
        submission, output = folder / "submission", folder / "outputs"
        submission.mkdir(parents=True)
        output.mkdir()
        # The preamble takes exactly one line, so that line numbers in tests are those of the script plus one.
        first = "exec(" + repr(PREAMBLE) + ")\n"
        (submission / "train.py").write_text(first + textwrap.dedent(text))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        origin = time.monotonic()
        ranks, stampers = [], []
        for rank in range(nproc):
            fifo = folder / f"rank{rank}.fifo"
            os.mkfifo(fifo)
            stamper = threading.Thread(target=_stamp, args=(fifo, folder / f"rank{rank}.trace", origin))
            stamper.start()
            stampers.append(stamper)
            own = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(nproc),
                "MASTER_PORT": str(port),
            }
            ranks.append(
                {
                    "fifo": str(fifo),
                    "stdout": str(folder / f"rank{rank}.out"),
                    "stderr": str(folder / f"rank{rank}.err"),
                    "submission": str(submission),
                    "origin": origin,
                    "probe": probe,
                    "lot": lot,
                    "environment": {**ENVIRONMENT, **own, "OUTPUT_DIR": str(output)},
                }
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"ranks": ranks, "timeout_s": timeout_s}) + "\n")
        self._process.stdin.flush()
        codes = self._answer()
        for stamper in stampers:
            stamper.join(timeout=10)
        traces = [folder / f"rank{rank}.trace" for rank in range(nproc)]
        out, err = (
            [(folder / f"rank{rank}.{end}").read_text() for rank in range(nproc)] for end in ("out", "err")
        )
        if expect is not None and codes != [expect] * nproc:
            pytest.fail(f"exit codes {codes}\n" + "\n".join(text[-4000:] for text in err))
        lines = [
            [json.loads(line.partition("\t")[2]) for line in path.read_text().splitlines()] for path in traces
        ]
        return Ran(read_trace(traces).ranks, codes, out, err, output, lines)


def _stamp(fifo: Path, path: Path, origin: float) -> None:
    with fifo.open("rb") as lines, path.open("wb") as out:
        for line in lines:
            out.write(b"%.6f\t%s" % (time.monotonic() - origin, line))
