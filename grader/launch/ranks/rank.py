"""A rank between the fork and the script's first line: its session, descriptors, limits, environment, seeds.

Runs in the child only. Leaves nothing of the supervisor reachable: no descriptor, no handler, no variable.
"""

from __future__ import annotations

import contextlib
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

from grader.launch.endings.stacks import STACK_SIGNAL
from grader.launch.ranks.script import run_as_main
from grader.launch.ranks.seal_key import KEY_BYTES, SealKey
from grader.launch.ranks.shims import put_in_place
from grader.launch.ranks.user import die_first, drop_to, yield_to_supervisor
from grader.launch.spec import LaunchSpec
from grader.launch.system.processes import die_with_parent

# High numbers, so that a script that closes or counts low descriptors neither hits these nor sees a difference.
_TRACE_FD = 1000
STACKS_FD = 1001
_QUESTIONS_FD = 1002
TROUBLE_FD = 1003
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

    def places(self) -> dict[int, int]:
        """Where a rank keeps each of them."""
        streams = {1: self.out, 2: self.err, STACKS_FD: self.stacks, TROUBLE_FD: self.trouble}
        return streams | {_TRACE_FD: self.trace, _QUESTIONS_FD: self.questions}


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
    with telling_trouble(ends.trouble):
        detach(spec, parent, ends.places())
        seed = rank_seed(spec.seed, rank)
        settle(spec, environment, seed)
        finished = _install_probe(spec, rank, origin, seed, key) if spec.probe else _nothing
        key.wipe()
        leave_no_module()
    os.close(TROUBLE_FD)
    arguments = spec.arguments(environment.get("MASTER_PORT", ""))
    run_as_main(Path(spec.submission_dir, spec.entry_point), arguments, finished)


@contextlib.contextmanager
def telling_trouble(descriptor: int) -> Iterator[None]:
    """End the process where something fails before the script, and tell it: there, or where `detach` has put it."""
    try:
        yield
    except BaseException:  # noqa: BLE001
        told = traceback.format_exc().encode(errors="replace")
        for place in (descriptor, TROUBLE_FD):
            with contextlib.suppress(OSError):
                os.write(place, told)
        os._exit(1)


def leave_no_module() -> None:
    """Take our names away.

    What the script imports by them is its own, or a fresh copy that leads nowhere; ours run on without a name.
    """
    for name in list(sys.modules):
        if name.partition(".")[0] == "grader":
            del sys.modules[name]


def detach(spec: LaunchSpec, parent: int, places: dict[int, int]) -> None:
    """Get a session, descriptors and a user of one's own; ends with the parent.

    Args:
        spec: the run; parent: process id of the process that forked this one.
        places: where each descriptor that is kept has to come to lie.
    """
    os.setsid()
    die_with_parent(parent)
    _keep_only(places)
    if spec.rank_uid and os.getuid() != spec.rank_uid:
        # What needs our own rights comes first; a new user loses the tie to its parent's end.
        die_first()
        yield_to_supervisor()
        drop_to(spec.rank_uid, spec.rank_uid)
        die_with_parent(parent)


def settle(spec: LaunchSpec, environment: dict[str, str], seed: int) -> None:
    """Take signals, limits, environment, folder and seeds as a script expects them."""
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
    answer_with_stacks(STACKS_FD)
    put_in_place(spec.shims)
    reseed(seed)


def answer_with_stacks(descriptor: int) -> None:
    """Write the main thread's stack there whenever the supervisor asks for it.

    Of that one only: the signal may come while another thread runs Python, whose frames change while they are walked;
    the rank would die of it.
    """
    faulthandler.register(STACK_SIGNAL, file=descriptor, all_threads=False, chain=False)


def _keep_only(places: dict[int, int]) -> None:
    # Copies above everything first: the numbers to be taken may be in use by another end.
    _raise_file_limit()
    above = max(places) + 1
    wanted = {0: os.open(os.devnull, os.O_RDONLY)} | places
    copies = {target: fcntl.fcntl(source, fcntl.F_DUPFD, above) for target, source in wanted.items()}
    for target, copy in copies.items():
        os.dup2(copy, target, inheritable=target <= 2)
    kept = sorted(wanted)
    for before, after in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(before + 1, after)


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


def reseed(seed: int) -> None:
    """Seed every generator that there is."""
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
