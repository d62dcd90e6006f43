# /// attack
# row = "40"
# aim = "None: torch.compile, with the C++ compiler and caches that it needs."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["compiled"]
# endings = ["completed"]
# wall_s = 150
# ///
import honest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = torch.compile(DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
print("compiled", honest.BATCH_SIZE, flush=True)
