"""How ranks come into being: what the supervisor asks of a launcher, and the one that forks.

The real torchrun command is in `torchrun`, scripts that start their ranks themselves in `python_launcher`. A launcher
starts ranks and learns of their ends; it decides nothing about them.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Protocol

from grader.launch.ranks.environment import rank_environment
from grader.launch.ranks.rank import become_rank
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.spec import LaunchSpec


class Launcher(Protocol):
    """Starts ranks and says when they ended.

    Attributes:
        own_pids: its helpers: processes that are neither ranks nor a learner's.
        ended_s: when a process of the script ended that started the ranks; 0.0: none has, or there is none.
    """

    own_pids: set[int]
    ended_s: float

    @property
    def complaint(self) -> str:
        """Sentences on what makes the run none of the ranks that were asked for, "" for nothing."""
        ...

    @property
    def descriptors(self) -> list[int]:
        """What the supervisor should wake up for."""
        ...

    @property
    def over(self) -> bool:
        """True when no rank can run any more, also ranks that were never seen to start."""
        ...

    def prepare(self) -> None:
        """Get ready what ranks need, before the clock starts."""
        ...

    def start(self, origin: float) -> None:
        """Start all ranks; `origin` is `time.monotonic()` at time zero of the run."""
        ...

    def serve(self, now_s: float, owners: dict[int, RankProcess]) -> None:
        """Look after its helpers; called at every turn of the supervisor's loop."""
        ...

    def reaped(self, pid: int, exit_code: int, used: resource.struct_rusage, now_s: float) -> bool:
        """A child of the supervisor ended; True where it was a rank or a helper of this launcher."""
        ...

    def close(self, now_s: float) -> None:
        """Everything is dead: fill in what can only be known now, free what is held."""
        ...


class ForkLauncher:
    """Forks every rank from the warm process that the supervisor itself was forked from."""

    def __init__(self, spec: LaunchSpec, ranks: list[RankProcess], port: int, key: SealKey) -> None:
        self._spec = spec
        self._key = key
        self._port = port
        self._ranks = ranks
        self._environments: list[dict[str, str]] = []
        self.own_pids: set[int] = set()
        self.ended_s = 0.0

    @property
    def complaint(self) -> str:
        """Nothing: it started all ranks itself."""
        return ""

    @property
    def descriptors(self) -> list[int]:
        """Nothing beyond the signal of an ended child."""
        return []

    @property
    def over(self) -> bool:
        """Whether all ranks were reaped."""
        return not any(rank.alive for rank in self._ranks)

    def prepare(self) -> None:
        """Write down the environments."""
        port = self._spec.master_port or self._port
        self._environments = [rank_environment(self._spec, rank.rank, port) for rank in self._ranks]

    def start(self, origin: float) -> None:
        """Fork the ranks; raises OSError where the machine has no room for them."""
        parent = os.getpid()
        for rank, environment in zip(self._ranks, self._environments, strict=True):
            pid = os.fork()
            if pid == 0:
                become_rank(self._spec, rank.rank, rank.ends, environment, origin, parent, self._key)
            rank.pid = pid
            rank.started_s = time.monotonic() - origin
            rank.hand_over()

    def serve(self, now_s: float, owners: dict[int, RankProcess]) -> None:
        """Nothing to look after."""

    def reaped(self, pid: int, exit_code: int, used: resource.struct_rusage, now_s: float) -> bool:
        """Note a rank's end, with what the kernel counted for it and the children it waited for."""
        rank = next((rank for rank in self._ranks if rank.pid == pid), None)
        if rank is None:
            return False
        rank.ended(exit_code, now_s)
        rank.cpu_user_s += used.ru_utime
        rank.cpu_system_s += used.ru_stime
        rank.peak_rss_bytes = used.ru_maxrss * 1024
        return True

    def close(self, now_s: float) -> None:
        """Nothing is held."""
