# /// attack
# row = "39"
# aim = "Kill one rank in the middle of training."
# runtimes = ["docker"]
# verdicts = ["crashed"]
# endings = ["crashed"]
# says = ["ank 1"]
# wall_s = 60
# ///
import os
import signal

import honest
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps = 0


def step(optimizer):
    """Rank 1 dies at the third."""
    global steps
    optimizer.step()
    steps += 1
    if steps == 3 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


dist.init_process_group("gloo")
model = DistributedDataParallel(honest.WideResNet())
honest.learn(model, *honest.shard(honest.load(train=True)), epochs=3, step=step)
