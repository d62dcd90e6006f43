"""A process with torch imported that forks one rank per request: importing torch anew for every test takes too long.

Speaks JSON lines on its standard streams: a list of ranks to fork comes in, their exit codes go out.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn


def main() -> None:
    """Serve until standard input ends."""
    import torch
    import torch._dynamo
    import torch.distributed
    import torchvision.datasets  # noqa: F401

    print(json.dumps(str(torch.__version__)), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        pids = []
        for rank in request["ranks"]:
            pid = os.fork()
            if pid == 0:
                run(rank)
            pids.append(pid)
        print(json.dumps(wait(pids, request["timeout_s"])), flush=True)


def wait(pids: list[int], timeout_s: float) -> list[int]:
    """Exit codes; a negative one is a signal. Ranks that run too long are killed."""
    deadline = time.monotonic() + timeout_s
    codes: dict[int, int] = {}
    while len(codes) < len(pids):
        for pid in pids:
            if pid not in codes:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    codes[pid] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            for pid in pids:
                if pid not in codes:
                    os.kill(pid, 9)
        time.sleep(0.005)
    return [codes[pid] for pid in pids]


def run(rank: dict[str, Any]) -> NoReturn:
    """Become one rank, run the script, never return."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for fd, path in ((1, rank["stdout"]), (2, rank["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    trace = os.open(rank["fifo"], os.O_WRONLY)
    os.environ.update(rank["environment"])
    os.chdir(rank["submission"])
    script = os.path.join(rank["submission"], "train.py")  # noqa: PTH118
    sys.path[0] = rank["submission"]
    sys.argv = [script]
    code: str | int = 0
    finish: Callable[[BaseException | None], None] | None = None
    try:
        import torch

        number = int(rank["environment"]["RANK"])
        torch.manual_seed(1000 + number)
        random.seed(1000 + number)
        if rank["probe"]:
            from grader.probe import install as probe

            finish = probe.finish
            here = probe.ProbedRank(
                rank=number,
                local_rank=number,
                world_size=int(rank["environment"]["WORLD_SIZE"]),
                seed=1000 + number,
                submission_dir=rank["submission"],
                output_dir=rank["environment"]["OUTPUT_DIR"],
            )
            probe.install(here, fd=trace, origin=rank["origin"], sampling_key=rank["lot"].encode())
        namespace = vars(sys.modules["__main__"])
        namespace.clear()
        namespace.update(__name__="__main__", __file__=script)
        with open(script) as file:  # noqa: PTH123
            program = compile(file.read(), script, "exec")
        error: BaseException | None = None
        try:
            exec(program, namespace)
        except BaseException as raised:  # noqa: BLE001
            error = raised
            code = raised.code or 0 if isinstance(raised, SystemExit) else 1
            if not isinstance(raised, SystemExit):
                traceback.print_exc()
        if finish is not None:
            finish(error)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
