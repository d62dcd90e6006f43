# /// attack
# row = "own"
# aim = "Stop the other rank, so that it neither runs nor ends."
# runtimes = ["docker"]
# verdicts = ["timed_out", "deadlocked"]
# wall_s = 4
# ///
import os
import signal
import time

import torch.distributed as dist

dist.init_process_group("gloo")
pids = [None] * dist.get_world_size()
dist.all_gather_object(pids, os.getpid())
if dist.get_rank() == 0:
    os.kill(pids[1], signal.SIGSTOP)
dist.barrier()
