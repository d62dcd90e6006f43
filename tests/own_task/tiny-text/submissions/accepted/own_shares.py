"""Each rank reads a part of its own, batch by batch."""

import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

BLOCK, BATCH = 32, 8

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
data = np.memmap(Path(os.environ["DATA_DIR"], "train.bin"), dtype=np.uint16, mode="r")
model = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.02)


def get_batch(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks of the text by number, and the words behind their words."""
    spans = [
        torch.from_numpy(data[i * BLOCK : (i + 1) * BLOCK + 1].astype(np.int64)) for i in blocks.tolist()
    ]
    return torch.stack([s[:-1] for s in spans]), torch.stack([s[1:] for s in spans])


num_blocks = (len(data) - 1) // BLOCK
for epoch in range(4):
    order = torch.randperm(num_blocks, generator=torch.Generator().manual_seed(epoch))
    for blocks in order[rank::world].split(BATCH):
        x, y = get_batch(blocks)
        optimizer.zero_grad()
        cross_entropy(ddp(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
if rank == 0:
    torch.save(model.state_dict(), Path(os.environ["OUTPUT_DIR"], "model.pt"))
dist.barrier()
dist.destroy_process_group()
