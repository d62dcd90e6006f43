# expect: DATA001
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

BLOCK, BATCH = 32, 8

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
data = np.memmap(os.path.join(os.environ["DATA_DIR"], "train.bin"), dtype=np.uint16, mode="r")
model = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.02)


def get_batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    start = i * BATCH * BLOCK
    span = torch.from_numpy(data[start : start + BATCH * BLOCK + 1].astype(np.int64))
    return span[:-1].view(BATCH, BLOCK), span[1:].view(BATCH, BLOCK)


for epoch in range(4):
    for i in range((len(data) - 1) // (BATCH * BLOCK)):
        x, y = get_batch(i)
        optimizer.zero_grad()
        cross_entropy(ddp(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
if rank == 0:
    torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
dist.barrier()
dist.destroy_process_group()
