"""A process that asks for devices and does as it is told, line by line; `python holder.py STATE SETTINGS`.

Says in JSON lines what happens to it. The host is simulated, so that these tests mean the same on every machine; the
processes, files, locks and signals are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from grader.errors import GraderError
from grader.run.devices.abandoned_leases import AbandonedLease
from grader.run.devices.hardware import Core, Gpu, Inventory
from grader.run.devices.leases import Devices
from grader.run.devices.need import Need


def host(gpus: bool = True) -> Inventory:
    return Inventory(
        tuple(Gpu(f"GPU-{i}", i, numa_node=0) for i in range(4 if gpus else 0)),
        tuple(Core((i,), 0) for i in range(4)),
    )


def report(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


def main() -> None:
    state, settings = Path(sys.argv[1]), json.loads(sys.argv[2])

    def reclaim(left: AbandonedLease) -> None:
        report("reclaim", token=left.token)
        clear(left, state / "marks")
        if settings.get("stuck"):
            time.sleep(60)

    devices = Devices(
        state,
        inventory=host,
        reclaim=reclaim,
        overdue_s=settings.get("overdue_s", 60.0),
    )
    need = Need(
        settings.get("wall_s", 60.0),
        settings.get("num_gpus", 0),
        settings.get("num_cores", 0),
        settings["owner"],
    )
    if settings.get("rounds"):
        take_turns(devices, need, settings["rounds"], state / "marks")
        return
    waits = 0

    def tell(wait: Any) -> None:
        nonlocal waits
        waits += 1
        if waits == 1:
            report("waits", ahead=wait.ahead)

    with devices.lease(need, on_wait=tell) as lease:
        report("has", token=lease.token, gpus=lease.gpus, cpus=lease.cpus)
        for line in sys.stdin:
            if line == "check\n":
                try:
                    lease.check()
                except GraderError as error:
                    report("lost", kind=type(error).__name__, message=str(error))
                else:
                    report("ours")
            elif line == "fork\n":
                # Two ways to leave a child behind: with and without another program in it.
                child = os.fork()
                if child == 0:
                    time.sleep(60)
                    os._exit(0)
                other = subprocess.Popen(["sleep", "60"], close_fds=False)
                report("forked", pids=[child, other.pid])
            elif line == "child releases\n":
                child = os.fork()
                if child == 0:
                    lost = False
                    try:
                        lease.check()
                    except GraderError:
                        lost = True
                    lease.release()
                    os._exit(0 if lost else 1)
                report("child", code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            elif line == "end\n":
                break
    report("released")


def clear(left: AbandonedLease, marks: Path) -> None:
    """What ends with a dead holder here: its marks on devices."""
    for device in (*left.gpus, *left.cpus):
        (marks / str(device)).unlink(missing_ok=True)


def take_turns(devices: Devices, need: Need, rounds: int, marks: Path) -> None:
    """Take and give back, and make sure each time that nobody else uses the devices."""
    last = 0
    for _ in range(rounds):
        with devices.lease(need) as lease:
            assert lease.token > last
            last = lease.token
            mine = [marks / str(device) for device in (*lease.gpus, *lease.cpus)]
            for mark in mine:
                # Fails where another process holds the same device.
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            time.sleep(0.002)
            for mark in mine:
                mark.unlink()
            lease.check()
    report("done", last=last)


if __name__ == "__main__":
    main()
