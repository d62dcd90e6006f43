# /// attack
# row = "39"
# aim = "Stop one rank before the others."
# runtimes = ["docker"]
# verdicts = ["deadlocked", "crashed"]
# says = ["train.py"]
# wall_s = 30
# ///
import time

import honest
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(honest.WideResNet())
if dist.get_rank() == 1:
    while True:
        time.sleep(60)
honest.learn(model, *honest.shard(honest.load(train=True)), epochs=1)
