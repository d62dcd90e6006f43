# expect: DIST002
# points: 94.4-95
"""
A toy network on several ranks, sound but for its end: nobody takes the group down.

    $ torchrun --nproc_per_node=2 train.py
"""
import os

import torch
import torch.distributed as dist
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


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device, backend = torch.device("cuda", local_rank), "nccl"
    else:
        device, backend = torch.device("cpu"), "gloo"
    dist.init_process_group(backend)  # <- DIST002

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



if __name__ == "__main__":
    main()
