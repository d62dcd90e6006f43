"""What torchrun starts instead of the script: becomes the rank in a child, and tells the supervisor how it ended.

Run by torchrun as `python -u torchrun_entry.py <address> <spec>`, never imported to be used. The waiting half imports
no torch and touches nothing of the rank: it forwards signals, reaps, reports, and ends exactly as the rank ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Fetch this rank's descriptors, fork the rank, report its end, end the same way."""
    # As a script this file's own folder comes first; the package does instead, until the rank has its own path.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    from grader.launch.ranks.rank import NUM_ENDS, RankEnds, become_rank
    from grader.launch.ranks.seal_key import SealKey
    from grader.launch.spec import LaunchSpec
    from grader.launch.system.processes import die_with_parent

    address, told = sys.argv[1], sys.argv[2]
    rank = int(os.environ["RANK"])
    agent = os.getppid()
    call = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    call.connect(f"\0{address}")
    call.sendall(json.dumps({"rank": rank}).encode() + b"\n")
    key, ends = SealKey.receive(call, NUM_ENDS)
    with call.makefile("rb", buffering=0) as lines:
        origin = json.loads(lines.readline())["origin"]
    environment = dict(os.environ)
    waiting = os.getpid()
    pid = os.fork()
    if pid == 0:
        # Before the seeds are set: a generator that does not exist yet cannot be seeded.
        import numpy  # noqa: F401
        import torch  # noqa: F401

        become_rank(LaunchSpec.from_json(told), rank, RankEnds(*ends), environment, origin, waiting, key)
    key.wipe()
    die_with_parent(agent)
    for end in ends:
        os.close(end)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, lambda received, _frame: os.kill(pid, received))
    call.sendall(json.dumps({"pid": pid}).encode() + b"\n")
    _pid, status, used = os.wait4(pid, 0)
    exit_code = os.waitstatus_to_exitcode(status)
    report = {
        "exit_code": exit_code,
        "user_s": used.ru_utime,
        "system_s": used.ru_stime,
        "peak_rss_bytes": used.ru_maxrss * 1024,
    }
    call.sendall(json.dumps(report).encode() + b"\n")
    call.close()
    if exit_code < 0:
        signal.signal(-exit_code, signal.SIG_DFL) if -exit_code != signal.SIGKILL else None
        os.kill(os.getpid(), -exit_code)
    os._exit(exit_code & 0xFF)


if __name__ == "__main__":
    main()
