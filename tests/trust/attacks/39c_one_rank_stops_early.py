# /// attack
# row = "39"
# aim = "Let one rank go home while the others go on."
# runtimes = ["docker"]
# verdicts = ["deadlocked", "crashed"]
# says = ["honest.py"]
# ///
import sys

import honest
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def step(optimizer):
    """Rank 1 has had enough after the first."""
    optimizer.step()
    if dist.get_rank() == 1:
        sys.exit(0)


dist.init_process_group("gloo")
model = DistributedDataParallel(honest.WideResNet())
honest.learn(model, *honest.shard(honest.load(train=True)), epochs=1, step=step)
