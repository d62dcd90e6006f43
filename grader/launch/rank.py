"""A rank between the fork and the script's first line: its session, descriptors, limits, environment, seeds.

Runs in the child only. Leaves nothing of the supervisor reachable: no descriptor, no handler, no variable.
"""

from __future__ import annotations

import faulthandler
import fcntl
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import NoReturn

from grader.launch.processes import die_with_parent
from grader.launch.script import run_as_main
from grader.launch.seal_key import KEY_BYTES, SealKey
from grader.launch.spec import LaunchSpec
from grader.launch.stacks import STACK_SIGNAL
from grader.launch.user import die_first, drop_to, yield_to_supervisor

# High numbers, so that a script that closes or counts low descriptors neither hits these nor sees a difference.
_TRACE_FD = 1000
_STACKS_FD = 1001
_QUESTIONS_FD = 1002
_TROUBLE_FD = 1003
_FILE_BYTES = 1 << 30
_NUM_FILES = 4096


@dataclass(frozen=True, slots=True)
class RankEnds:
    """The rank's ends of everything that leads to the supervisor: descriptors, in the order in which they are sent."""

    out: int
    err: int
    trace: int
    trouble: int
    stacks: int
    questions: int

    def __iter__(self) -> Iterator[int]:
        return iter(astuple(self))


NUM_ENDS = len(fields(RankEnds))


def rank_seed(seed: int, rank: int) -> int:
    """A rank's own seed, below 2**32, unrelated to its neighbours'."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{rank}".encode()).digest()[:4], "big")


def become_rank(
    spec: LaunchSpec,
    rank: int,
    ends: RankEnds,
    environment: dict[str, str],
    origin: float,
    parent: int,
    key: SealKey,
) -> NoReturn:
    """Turn a freshly forked child into a rank and run the script; never returns, never raises.

    What fails before the script is told through `ends.trouble`: it is our fault, not the script's.

    Args:
        spec: the run.
        rank: global rank.
        ends: descriptors of this rank.
        environment: the whole environment of the rank.
        origin: `time.monotonic()` of the ranks' start.
        parent: process id of the process that forked it.
        key: of the run; forgotten before the script begins.
    """
    trouble = ends.trouble
    try:
        os.setsid()
        die_with_parent(parent)
        _keep_only(ends)
        trouble = _TROUBLE_FD
        if spec.rank_uid and os.getuid() != spec.rank_uid:
            # What needs our own rights comes first; a new user loses the tie to its parent's end.
            die_first()
            yield_to_supervisor()
            drop_to(spec.rank_uid, spec.rank_uid)
            die_with_parent(parent)
        finished = _settle(spec, rank, environment, origin, key)
        key.wipe()
        _leave_no_module()
    except BaseException:  # noqa: BLE001
        os.write(trouble, traceback.format_exc().encode(errors="replace"))
        os._exit(1)
    os.close(_TROUBLE_FD)
    run_as_main(Path(spec.submission_dir, spec.entry_point), spec.argv, finished)


def _leave_no_module() -> None:
    # What the script imports by our name is its own, or a fresh copy that leads nowhere; ours run on without a name.
    for name in list(sys.modules):
        if name.partition(".")[0] == "grader":
            del sys.modules[name]


def _settle(
    spec: LaunchSpec, rank: int, environment: dict[str, str], origin: float, key: SealKey
) -> Callable[[BaseException | None], None]:
    _default_signals()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_NOFILE, _NUM_FILES)
    if spec.num_processes:
        _limit(resource.RLIMIT_NPROC, spec.num_processes)
    os.environ.clear()
    os.environ.update(environment)
    # Remembered from before $TMPDIR was set.
    tempfile.tempdir = None
    os.chdir(spec.submission_dir)
    faulthandler.register(STACK_SIGNAL, file=_STACKS_FD, all_threads=True, chain=False)
    seed = rank_seed(spec.seed, rank)
    _reseed(seed)
    return _install_probe(spec, rank, origin, seed, key) if spec.probe else _nothing


def _keep_only(ends: RankEnds) -> None:
    # Copies above everything first: the numbers to be taken may be in use by another end.
    null = os.open(os.devnull, os.O_RDONLY)
    wanted = {0: null, 1: ends.out, 2: ends.err}
    wanted |= {_TRACE_FD: ends.trace, _STACKS_FD: ends.stacks}
    wanted |= {_QUESTIONS_FD: ends.questions, _TROUBLE_FD: ends.trouble}
    _raise_file_limit()
    copies = {
        target: fcntl.fcntl(source, fcntl.F_DUPFD, _TROUBLE_FD + 1) for target, source in wanted.items()
    }
    for target, copy in copies.items():
        os.dup2(copy, target, inheritable=target <= 2)
    os.closerange(3, _TRACE_FD)
    os.closerange(_TROUBLE_FD + 1, os.sysconf("SC_OPEN_MAX"))


def _raise_file_limit() -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _limit(kind: int, value: int) -> None:
    _soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _reseed(seed: int) -> None:
    # Forked twins share every generator's state; ranks that only look synchronised because they do the same work
    # must show.
    random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)


def _nothing(error: BaseException | None) -> None:
    """The script ended and nobody wants to know."""


def _install_probe(
    spec: LaunchSpec, rank: int, origin: float, seed: int, key: SealKey
) -> Callable[[BaseException | None], None]:
    from grader.probe.install import ProbedRank, finish, install

    here = ProbedRank(
        rank=rank,
        local_rank=spec.local_rank(rank),
        world_size=spec.world_size,
        seed=seed,
        submission_dir=spec.submission_dir,
        output_dir=spec.output_dir,
        traced_steps=spec.traced_steps,
    )
    sampling_key = spec.sampling_seed.to_bytes(KEY_BYTES, "big") if spec.sampling_seed else b""
    install(
        here,
        fd=_TRACE_FD,
        origin=origin,
        key=key.raw,
        sampling_key=sampling_key,
        questions=_QUESTIONS_FD,
    )
    return finish
