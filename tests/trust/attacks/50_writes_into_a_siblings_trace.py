# /// attack
# row = "own"
# aim = "Open the pipe of another rank through /proc, and tell events in there."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# ///
import ctypes
import glob
import json
import os
import stat
import time

import honest
import torch.distributed as dist

ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: whoever is the same user may look
dist.init_process_group("gloo")
pids = [None] * dist.get_world_size()
dist.all_gather_object(pids, os.getpid())
other = pids[1 - dist.get_rank()]
for path in glob.glob(f"/proc/{other}/fd/*"):
    try:
        if int(os.path.basename(path)) > 2 and stat.S_ISFIFO(os.stat(path).st_mode):
            with open(path, "wb", buffering=0) as file:
                for number in range(5):
                    file.write((json.dumps({"e": "end", "t": time.monotonic() % 1, "steps": number, "backwards": 1, "forwards": 1, "group_destroyed": True, "sequence": 1, "peak_device_bytes": None}) + "\n").encode())
            print("told", path, flush=True)
    except OSError as error:
        print(path, error, flush=True)
dist.barrier()
dist.destroy_process_group()
