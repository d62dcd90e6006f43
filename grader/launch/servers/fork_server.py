"""The fork server: has imported torch, waits for runs, forks a supervisor for each, one at a time.

    python -u -m grader.launch.servers.fork_server

Runs no tensor operation and keeps to one thread, because neither thread pools nor GPU contexts survive a fork;
keeps no secret, because ranks inherit its memory. Reads one `LaunchSpec` per line on standard input, or
`{"stop": true}`; writes JSON lines on standard output: `ready`, then per run the supervisor's `progress` and at last
`ended` or `failed`. Its own end, or the end of its input, ends the run and everything that descends from it.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
import time
import traceback
from typing import Any, NoReturn

from grader.launch.bounds import kill_s, stop_s
from grader.launch.endings.ending import end_descendants
from grader.launch.launchers.rendezvous_store import start_store
from grader.launch.servers.warm_imports import import_everything
from grader.launch.spec import LaunchSpec
from grader.launch.system.machine import environment_facts
from grader.launch.system.network import LOOPBACK
from grader.launch.system.processes import adopt_orphans, die_with_parent, other_threads, send, usage

_LOOK_S = 0.5


class ForkServer:
    """Serves runs until its input ends or its parent is gone."""

    def __init__(
        self,
        *,
        once: bool = False,
        idle_s: float = math.inf,
        store_uid: int = 0,
        place: tuple[str, str] = LOOPBACK,
    ) -> None:
        """Take over the standard streams.

        Args:
            once: serve one run and end; idle_s: end when no run came for so long.
            store_uid: user that rendezvous stores become; 0: stays what we are.
            place: interface that ranks meet on, and our address there.
        """
        # The protocol moves away from 0 and 1, where ranks and stray prints would find it.
        self._requests = os.dup(0)
        self._replies = os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        self._starter = os.getppid()
        self._received = b""
        self._over = False
        self._store = 0
        self._store_port = 0
        self._store_uid = store_uid
        self._place = place
        self._once = once
        self._idle_s = idle_s

    def serve(self) -> None:
        """Answer requests one after the other."""
        adopt_orphans()
        import_everything("grader.launch.supervisor")
        if threads := other_threads():
            raise RuntimeError(
                f"the imports left {len(threads)} threads running, which a fork would lose: {', '.join(threads)}"
            )
        self._next_store()
        interface, address = self._place
        place = {"interface": interface, "address": address, "port": self._store_port}
        self.report({"event": "ready", "environment": environment_facts(), **place})
        while (request := self._next_request()) is not None:
            if "stop" in request:
                continue
            self.answer(request)
            if self._once:
                return
            # A store knows what its ranks told it, so the next run gets another; nobody waits for this change.
            end_descendants(kill_s(0))
            self._next_store()

    def answer(self, request: dict[str, Any]) -> None:
        """Do what one request asks for."""
        try:
            spec = LaunchSpec.from_json(json.dumps(request))
            request.clear()  # ranks inherit what is in memory here
        except (KeyError, TypeError, ValueError) as error:
            self.report({"event": "failed", "reason": f"not a launch spec: {error}"})
            return
        self.run(spec)

    def run(self, spec: LaunchSpec) -> None:
        """Have a supervisor do one run and report how that went; nothing of the run lives afterwards."""
        if not self._store_lives():
            if spec.nnodes > 1:
                self.report(
                    {"event": "failed", "reason": "the rendezvous store that others were told of has ended"}
                )
                return
            self._next_store()
        parent = os.getpid()
        orders, to_supervisor = os.pipe() if spec.nnodes > 1 else (None, None)
        pid = os.fork()
        if pid == 0:
            self._become_supervisor(spec, parent, orders)
        exit_code = self._wait(pid, to_supervisor, stop_s(len(spec.gpus)))
        for end in (orders, to_supervisor):
            if end is not None:
                os.close(end)
        left = end_descendants(kill_s(len(spec.gpus)), spared=self._store, uid=spec.rank_uid)
        # The end of a container is the end of all that is in it.
        if exit_code == 0 and (not left or self._once):
            self.report({"event": "ended", "attempt": spec.attempt})
        else:
            reason = f"the supervisor ended with {exit_code}" + (f", {left} processes left" if left else "")
            self.report({"event": "failed", "attempt": spec.attempt, "reason": reason})

    def _store_lives(self) -> bool:
        store = usage(self._store)
        return store is not None and not store.zombie

    def _next_store(self) -> None:
        self._store, self._store_port = start_store(self._store_uid, self._place[1])

    def _become_supervisor(self, spec: LaunchSpec, parent: int, orders: int | None) -> NoReturn:
        exit_code = 1
        try:
            # Ours to handle from the first moment: the parent's death must end the ranks, not only us.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            die_with_parent(parent, signal.SIGTERM)
            os.close(self._requests)
            from grader.launch.supervisor import supervise

            supervise(spec, self._store_port, self._replies, orders)
            exit_code = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(exit_code)

    def _wait(self, pid: int, to_supervisor: int | None, limit_s: float) -> int:
        """Wait for the supervisor; stops it when told to, or when nobody is there to be told any more.

        Args:
            pid: the supervisor; to_supervisor: where it is told of other nodes; limit_s: how long stopping may take.
        """
        handle = os.pidfd_open(pid)
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.register(self._requests, select.POLLIN)
        deadline: float | None = None
        while True:
            ready = {descriptor for descriptor, _event in poller.poll(_LOOK_S * 1000)}
            if handle in ready:
                break
            if self._requests in ready and not self._receive():
                poller.unregister(self._requests)
            stop = self._over or os.getppid() != self._starter or b'"stop"' in self._received
            if to_supervisor is not None and not stop:
                whole, newline, self._received = self._received.rpartition(b"\n")
                os.write(to_supervisor, whole + newline)
            if stop and deadline is None:
                self._received = b""
                deadline = time.monotonic() + limit_s
                send(pid, signal.SIGTERM)
            if deadline is not None and time.monotonic() > deadline:
                send(pid, signal.SIGKILL)
        os.close(handle)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _next_request(self) -> dict[str, Any] | None:
        poller = select.poll()
        poller.register(self._requests, select.POLLIN)
        deadline = time.monotonic() + self._idle_s
        while b"\n" not in self._received:
            if self._over or os.getppid() != self._starter or time.monotonic() > deadline:
                return None
            if poller.poll(_LOOK_S * 1000):
                self._receive()
        line, _newline, self._received = self._received.partition(b"\n")
        request = json.loads(line)
        return request if isinstance(request, dict) else {}

    def _receive(self) -> bool:
        chunk = os.read(self._requests, 1 << 16)
        self._received += chunk
        self._over = not chunk
        return bool(chunk)

    def report(self, event: dict[str, Any]) -> None:
        """One line of the protocol."""
        os.write(self._replies, (json.dumps(event) + "\n").encode())


def main() -> int:
    """Serve; 0 when the input ended."""
    try:
        ForkServer().serve()
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
