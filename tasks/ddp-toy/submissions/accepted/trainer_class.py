"""
Train a toy network for a few steps with DistributedDataParallel; a class owns the group and gives it back.

    $ torchrun --nproc_per_node=2 train.py

Each rank draws from a generator of its own. Rank 0 leaves the weights behind.
"""
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


@contextmanager
def process_group():
    """All ranks together for as long as the block lasts, however it ends."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank(), int(os.environ.get("LOCAL_RANK", 0))
    finally:
        dist.destroy_process_group()


class Trainer:
    def __init__(self, rank, local_rank, steps=6, batch_size=20):
        self.rank, self.steps, self.batch_size = rank, steps, batch_size
        use_cuda = torch.cuda.is_available()
        self.device = torch.device(f"cuda:{local_rank}") if use_cuda else torch.device("cpu")
        if use_cuda:
            torch.cuda.set_device(self.device)
        self.model = DDP(ToyModel().to(self.device), device_ids=[local_rank] if use_cuda else None)
        self.optimizer = optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.loss_fn = nn.MSELoss()
        self.random = torch.Generator().manual_seed(100 + rank)

    def batch(self):
        inputs = torch.randn(self.batch_size, 10, generator=self.random)
        targets = torch.randn(self.batch_size, 5, generator=self.random)
        return inputs.to(self.device), targets.to(self.device)

    def step(self):
        inputs, targets = self.batch()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_fn(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        for step in range(self.steps):
            loss = self.step()
            dist.all_reduce(loss)
            if self.rank == 0:
                print(f"step {step + 1}: mean loss {loss.item() / dist.get_world_size():.4f}")
        if self.rank == 0:
            folder = os.environ.get("OUTPUT_DIR", ".")
            os.makedirs(folder, exist_ok=True)
            torch.save(self.model.module.state_dict(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    with process_group() as (rank, local_rank):
        Trainer(rank, local_rank).fit()
