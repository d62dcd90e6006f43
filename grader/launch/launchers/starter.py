"""The process that runs a script which starts its ranks itself: a rank's setting, and no rank yet.

Runs as the ranks' user.
"""

from __future__ import annotations

import json
import multiprocessing.popen_fork
import multiprocessing.popen_forkserver
import os
import resource
import socket
from pathlib import Path
from typing import Any, NoReturn

from grader.launch.launchers.membership import ONLY_IF_NOBODY, Membership, telling_burials, telling_exits
from grader.launch.launchers.waiting_processes import WaitingProcesses
from grader.launch.ranks.rank import (
    STACKS_FD,
    TROUBLE_FD,
    RankEnds,
    detach,
    leave_no_module,
    rank_seed,
    settle,
    telling_trouble,
)
from grader.launch.ranks.script import run_as_main
from grader.launch.ranks.seal_key import SealKey
from grader.launch.spec import LaunchSpec
from grader.probe.install import ProbedRank, finish_once, install_everywhere
from grader.probe.processes import joining

_CONTROL_FD = 1000


def become_starter(
    spec: LaunchSpec, ends: RankEnds, environment: dict[str, str], control: int, address: str, key: SealKey
) -> NoReturn:
    """Turn a freshly forked child into the script's first process; never returns, never raises.

    Args:
        spec: the run; ends: of rank 0, whose streams are this process's.
        environment: the whole environment of the script.
        control: socket to the supervisor, which says when to begin.
        address: where the supervisor takes calls.
        key: of the run; forgotten before the script begins.
    """
    parent = os.getppid()
    with telling_trouble(ends.trouble):
        places = {1: ends.out, 2: ends.err, STACKS_FD: ends.stacks, TROUBLE_FD: ends.trouble}
        detach(spec, parent, places | {_CONTROL_FD: control})
        seed = rank_seed(spec.seed, 0)
        settle(spec, environment, seed)
        finished = _finish_nothing
        waiting = WaitingProcesses(spec)
        if spec.probe:
            membership = Membership(spec, address)
            _install(spec, membership, seed, key)
            finished = _finish_starter
            key.wipe()
            waiting.fork(spec.nproc_per_node, (_CONTROL_FD, TROUBLE_FD))
        leave_no_module()
        with socket.socket(fileno=_CONTROL_FD) as supervisor:
            used = resource.getrusage(resource.RUSAGE_SELF)
            supervisor.sendall(json.dumps({"ready": used.ru_utime + used.ru_stime}).encode() + b"\n")
            began = json.loads(supervisor.recv(1 << 12))
        joining.begin(began["origin"], seed)
        waiting.origin = began["origin"]
    os.close(TROUBLE_FD)
    run_as_main(Path(spec.submission_dir, spec.entry_point), spec.arguments(began["port"]), finished)


def _install(spec: LaunchSpec, membership: Membership, seed: int, key: SealKey) -> None:
    here = ProbedRank(
        rank=0,
        local_rank=0,
        world_size=spec.world_size,
        seed=seed,
        submission_dir=spec.submission_dir,
        output_dir=spec.output_dir,
        traced_steps=spec.traced_steps,
    )
    system: Any = os
    system._exit = telling_exits(membership, system._exit)
    # Hooks of the probe come around it: what they tell comes first.
    install_everywhere(here, membership.join, key=key.raw)
    popens: tuple[Any, ...] = (multiprocessing.popen_fork.Popen, multiprocessing.popen_forkserver.Popen)
    for popen in popens:
        popen.poll = telling_burials(membership, popen.poll)


def _finish_nothing(error: BaseException | None) -> None:
    """Without the probe nobody wants to know."""


def _finish_starter(error: BaseException | None) -> None:
    # Who starts ranks is none; where there are none, the script ran here.
    joining.join(ONLY_IF_NOBODY)
    finish_once(error)
