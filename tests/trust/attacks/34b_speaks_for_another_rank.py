# /// attack
# row = "34"
# aim = "Tell events in the name of another rank."
# runtimes = ["docker"]
# verdicts = ["held"]
# codes = ["TRUST002"]
# ///
import json
import os
import stat
import time

import honest


def pipe():
    """The descriptor through which this rank is watched."""
    for descriptor in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        try:
            if descriptor > 2 and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None


for kind, fields in (("start", {"torch": "2.9", "python": "3.11", "rank": 7, "local_rank": 7, "world_size": 9, "pid": 1, "seed": 0, "probe": 1}), ("end", {"steps": 9, "backwards": 9, "forwards": 9, "group_destroyed": True, "sequence": 1, "peak_device_bytes": None})):
    os.write(pipe(), (json.dumps({"e": kind, "t": time.monotonic() % 1, **fields}) + "\n").encode())
honest.main(epochs=1)
