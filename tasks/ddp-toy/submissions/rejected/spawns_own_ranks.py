# expect: DIST006
"""
A toy network on several ranks, each of which starts two more of its own instead of being one.

    $ torchrun --nproc_per_node=2 train.py
"""
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
BATCH_SIZE = 20  # of each rank
LR = 0.001


class ToyModel(nn.Module):
    """Two linear layers with a ReLU in between: 10 numbers in, 5 numbers out."""

    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def main(local_rank, port, num_ranks):
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device, backend = torch.device("cuda", local_rank), "nccl"
    else:
        device, backend = torch.device("cpu"), "gloo"
    dist.init_process_group(
        backend, init_method=f"tcp://127.0.0.1:{port}", rank=local_rank, world_size=num_ranks
    )

    model = ToyModel().to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if device.type == "cuda" else None)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)

    for step in range(STEPS):
        inputs = torch.randn(BATCH_SIZE, 10, device=device)
        targets = torch.randn(BATCH_SIZE, 5, device=device)
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step + 1}/{STEPS}: loss {loss.item():.4f}")

    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free_port = free.getsockname()[1]
    num_ranks = torch.cuda.device_count() or 2
    mp.start_processes(main, args=(free_port, num_ranks), nprocs=num_ranks, start_method="fork")  # <- DIST006
