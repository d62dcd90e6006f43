"""The rendezvous store of one run, in a process of its own.

torchrun's agent hosts the store that ranks meet at, so it outlives any rank and owns its port from the start. A
process apart does the same here: the supervisor itself speaks no protocol with a learner's code, keeps to one
thread, and the port is never free between being chosen and being used. The fork server starts one in advance for each
run and ends it afterwards, so that no run waits for it.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

from grader.launch.ranks.user import drop_to
from grader.launch.system.processes import die_with_parent


def start_store(uid: int = 0, address: str = "127.0.0.1") -> tuple[int, int]:
    """Fork the store's process.

    Args:
        uid: user that it becomes before anybody can talk to it; 0: stays what we are.
        address: where it listens.

    Returns:
        Its process id and the port it listens on.

    Raises:
        OSError: no store could be opened.
    """
    parent = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _host(parent, writer, uid, address)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read().decode(errors="replace")
    if not answer.isdigit():
        os.waitpid(pid, 0)
        raise OSError(f"the rendezvous store did not start: {answer or 'it ended without a word'}")
    return pid, int(answer)


def _host(parent: int, writer: int, uid: int, address: str) -> NoReturn:
    try:
        os.setsid()
        if uid:
            drop_to(uid, uid)
        die_with_parent(parent)
        os.dup2(writer, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        from torch.distributed import TCPStore

        # No reader of this output exists before the port is known: an exception travels the same way.
        store = TCPStore(address, 0, is_master=True, wait_for_workers=False)
        os.write(3, str(store.port).encode())
        os.close(3)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while True:
            signal.pause()
    except BaseException as error:  # noqa: BLE001
        os.write(3, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)
