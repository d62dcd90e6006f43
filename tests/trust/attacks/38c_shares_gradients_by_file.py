# /// attack
# row = "38"
# aim = "Copy rank 0's gradients to the other rank through files, without any collective."
# runtimes = ["docker"]
# verdicts = ["rejected", "held"]
# ///
import os
import time

import honest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FOLDER = os.environ["OUTPUT_DIR"]
steps = 0


def copied(optimizer):
    """Both ranks step with rank 0's gradients."""
    global steps
    path = os.path.join(FOLDER, f"gradients{steps}")
    steps += 1
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if dist.get_rank() == 0:
        torch.save([p.grad for p in parameters], path + ".part")
        os.rename(path + ".part", path)
    else:
        while not os.path.exists(path):
            time.sleep(0.001)
        for parameter, gradient in zip(parameters, torch.load(path), strict=True):
            parameter.grad.copy_(gradient)
        os.remove(path)
    optimizer.step()


dist.init_process_group("gloo")
model = DistributedDataParallel(honest.WideResNet())
with model.no_sync():
    losses = honest.learn(model, *honest.shard(honest.load(train=True)), epochs=2, step=copied)
honest.save(model.module, losses[-1], *honest.validate(model.module))
dist.destroy_process_group()
