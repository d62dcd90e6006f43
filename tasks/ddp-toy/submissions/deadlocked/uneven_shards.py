# expect: DATA005
"""
A toy network on several ranks that share out 110 samples: rank 0 gets one batch more than the last has to offer.

    $ torchrun --nproc_per_node=2 train.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

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
    dist.init_process_group(backend)

    model = ToyModel().to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if device.type == "cuda" else None)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)

    torch.manual_seed(0)
    samples = TensorDataset(torch.randn(110, 10), torch.randn(110, 5))
    num_mine = 60 if dist.get_rank() == 0 else 50
    mine = Subset(samples, range(dist.get_rank() * 10, dist.get_rank() * 10 + num_mine))
    for inputs, targets in DataLoader(mine, batch_size=BATCH_SIZE // 2):  # <- DATA005
        optimizer.zero_grad()
        loss = loss_fn(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
    dist.barrier()

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
