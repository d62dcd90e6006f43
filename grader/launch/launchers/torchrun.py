"""The second launcher: the real torchrun command, with every rank still seen from outside.

The command reports no exit code but its own (always 1), mixes the ranks' output and reaps them itself. So, where the
probe is wanted, it is given `torchrun_entry.py` to start instead of the script: each such process fetches its rank's
descriptors from the supervisor through a Unix socket, forks, lets the child become the rank, and tells how the child
ended and what the kernel counted for it. torchrun sees the same process, the same exit code, the same signals.

Without the probe the command is the plain one that a learner would type, with nothing of ours in it (`--redirects`
and `--log-dir` apart): the oracle of the other launcher. Then output is read from torchrun's files, exit codes are
those of torchrun's own failure table, processor time is what `/proc` said last, and there are no stacks.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from grader.launch.launchers import torchrun_entry
from grader.launch.ranks.environment import job_environment
from grader.launch.ranks.rank_calls import RankCalls
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.ranks.streams import Capture, open_pipe
from grader.launch.ranks.user import as_user
from grader.launch.spec import LaunchSpec
from grader.launch.system.processes import usage

_LOG_BYTES = 1 << 20
_RANK_LOG_BYTES = 64 << 20
_USUAL_PORT = 29500
_FAILED = re.compile(r"rank\s*:\s*(\d{1,9}) \(local_rank: \d+\)\s+exitcode\s*:\s*(-?\d{1,9})\b")
_NONSENSE = (ValueError, KeyError, TypeError, IndexError, OverflowError)
"""What a message raises that no entry process sent: it is passed over."""


class TorchrunLauncher:
    """Starts ranks through `python -m torch.distributed.run`."""

    def __init__(self, spec: LaunchSpec, ranks: list[RankProcess], key: SealKey) -> None:
        self._spec = spec
        self._key = key
        self._ranks = ranks
        self.own_pids: set[int] = set()
        self.ended_s = 0.0
        self._agent_pid = 0
        self._agent_exit: int | None = None
        self._callers: dict[socket.socket, RankProcess] = {}
        self._calls = RankCalls(spec.nproc_per_node)
        self._origin = 0.0
        self._log_dir = Path(spec.scratch_dir, "torchrun")
        reader, self._agent_writer = open_pipe()
        self._agent_log = Capture(reader, _LOG_BYTES)

    @property
    def complaint(self) -> str:
        """The command started too few."""
        missing = ", ".join(str(rank.rank) for rank in self._ranks if rank.exit_code is None)
        return f"The launcher ended without starting rank {missing}." if missing else ""

    @property
    def descriptors(self) -> list[int]:
        """Where entry processes call."""
        return self._calls.descriptors

    @property
    def over(self) -> bool:
        """Whether the command itself has ended, and every rank that called us has told its end."""
        return self._agent_exit is not None and self._calls.idle

    def prepare(self) -> None:
        """Entry processes can call already."""

    def start(self, origin: float) -> None:
        """Start the command; raises OSError where this machine has no room for it."""
        spec = self._spec
        self._origin = origin
        command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={spec.nproc_per_node}"]
        command += [f"--rdzv-id={spec.attempt}", *_rendezvous(spec)]
        if spec.probe:
            command += [torchrun_entry.__file__, self._calls.address, spec.to_json()]
        else:
            command += [f"--log-dir={self._log_dir}", "--redirects=3", spec.entry_point, *spec.arguments("")]
        with open(os.devnull, "rb") as null:
            agent = subprocess.Popen(
                command,
                cwd=spec.submission_dir,
                env=job_environment(spec),
                stdin=null,
                stdout=self._agent_writer,
                stderr=self._agent_writer,
                start_new_session=True,
                # The agent unpickles what ranks wrote, so it must be no more than they are.
                **_as(spec.rank_uid),
            )
        os.close(self._agent_writer)
        self._agent_pid = agent.pid
        # Reaped by the supervisor's own loop, with everything else.
        agent.returncode = 0
        self.own_pids.add(agent.pid)

    def serve(self, now_s: float, owners: dict[int, RankProcess]) -> None:
        """Take calls of entry processes and what they tell; find ranks of the plain command by their environment."""
        self._agent_log.drain()
        for call, message in self._calls.take():
            if message is None:
                self._hung_up(call, now_s)
                continue
            with contextlib.suppress(*_NONSENSE):
                self._understand(call, message, now_s)
        if not self._spec.probe:
            self._find_ranks(now_s, owners)

    def reaped(self, pid: int, exit_code: int, used: resource.struct_rusage, now_s: float) -> bool:
        """The command ended; ranks are reaped by it or by their entry processes."""
        if pid != self._agent_pid:
            return False
        self._agent_exit = exit_code
        return True

    def close(self, now_s: float) -> None:
        """Fill in what only the command knew, keep its own log."""
        self._calls.close()
        self._agent_log.drain()
        text = self._agent_log.text()
        Path(self._spec.record_dir, "logs", "torchrun.err").write_text(text, encoding="utf-8")
        self._agent_log.close()
        if self._spec.probe:
            return
        codes = {int(rank): int(code) for rank, code in _FAILED.findall(text)}
        for rank in self._ranks:
            if rank.alive and rank.pid:
                rank.ended(codes.get(rank.rank, 0 if self._agent_exit == 0 else 1), now_s)
            elif rank.rank in codes:
                rank.exit_code = codes[rank.rank]
            self._read_logs(rank)

    def _hung_up(self, call: socket.socket, now_s: float) -> None:
        rank = self._callers.pop(call, None)
        if rank is not None and rank.alive:
            # The entry process was ended before it could tell; its rank dies with it.
            rank.ended(-signal.SIGKILL, now_s)
            rank.killed_by_judge = rank.killed_by_judge or self._another_failed(rank)

    def _understand(self, call: socket.socket, message: dict[str, int | float], now_s: float) -> None:
        rank = self._callers.get(call)
        if rank is None:
            rank = self._ranks[self._spec.local_rank(int(message["rank"]))]
            if rank.pid:
                raise ValueError("a second process claims this rank")
            self._callers[call] = rank
            # Command lines may be read by anybody: the key goes to the entry processes with the descriptors.
            self._key.send(call, list(rank.ends))
            call.sendall(json.dumps({"origin": self._origin}).encode() + b"\n")
            rank.hand_over()
            rank.started_s = rank.last_moved_s = now_s
            rank.pid = -1
        elif "pid" in message:
            rank.pid = int(message["pid"])
        else:
            rank.ended(int(message["exit_code"]), now_s)
            rank.cpu_user_s += float(message["user_s"])
            rank.cpu_system_s += float(message["system_s"])
            rank.peak_rss_bytes = int(message["peak_rss_bytes"])
            if rank.exit_code == -signal.SIGTERM and self._another_failed(rank):
                # torchrun ends the others when one fails, as the judge does in its own launcher.
                rank.killed_by_judge = True

    def _another_failed(self, rank: RankProcess) -> bool:
        return any(other.exit_code for other in self._ranks if other is not rank)

    def _find_ranks(self, now_s: float, owners: dict[int, RankProcess]) -> None:
        for pid in list(owners) + _children_of(self._agent_pid):
            number = _rank_of(pid)
            rank = next((rank for rank in self._ranks if rank.rank == number), None)
            if rank is not None and not rank.pid:
                rank.pid = pid
                rank.started_s = now_s
        for rank in self._ranks:
            if rank.pid and rank.alive:
                process = usage(rank.pid)
                if process is None or process.zombie:
                    rank.ended(0, now_s)
                else:
                    rank.last_moved_s = now_s
                    rank.cpu_user_s = process.cpu_s
                    rank.peak_rss_bytes = max(rank.peak_rss_bytes, process.rss_bytes)

    def _read_logs(self, rank: RankProcess) -> None:
        for stream, name in ((rank.out, "stdout.log"), (rank.err, "stderr.log")):
            pattern = f"*/attempt_0/{self._spec.local_rank(rank.rank)}/{name}"
            with tempfile.TemporaryFile(dir=self._spec.record_dir) as copy:
                # Theirs to read: what lies there under these names is whatever the ranks put there.
                as_user(
                    self._spec.rank_uid, functools.partial(_copy_all, self._log_dir, pattern, copy.fileno())
                )
                copy.seek(0)
                stream.take_file(copy)


def _copy_all(folder: Path, pattern: str, target: int) -> None:
    for path in folder.glob(pattern):
        # A pipe in the log's place must not hold us.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            left = _RANK_LOG_BYTES
            while left > 0 and (chunk := file.read(min(left, 1 << 16))):
                os.write(target, chunk)
                left -= len(chunk)


def _rendezvous(spec: LaunchSpec) -> list[str]:
    if spec.nnodes == 1:
        # The agent chooses a free port itself, and no name needs to be looked up.
        return ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    # Nodes keep their numbers, and nobody else is on the attempt's network who could have taken the usual port.
    nodes = [f"--nnodes={spec.nnodes}", f"--node-rank={spec.node_rank}"]
    return [*nodes, f"--master-addr={spec.master_addr}", f"--master-port={_USUAL_PORT}"]


def _as(uid: int) -> dict[str, Any]:
    return {"user": uid, "group": uid, "extra_groups": []} if uid else {}


def _children_of(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def _rank_of(pid: int) -> int | None:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)
    rank = values.get(b"RANK", b"").decode(errors="replace")
    return int(rank) if rank.isdecimal() and len(rank) < 10 and values.get(b"LOCAL_RANK") else None
