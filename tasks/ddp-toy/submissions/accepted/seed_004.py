"""
The basic example of the lecture: one step, every rank says when it starts and when it is done.

    $ torchrun --nproc_per_node=2 train.py

Made to run where there is no GPU, and nothing else: the backend and the device depend on what there is. For several
machines the code is the same and only the launch differs:

    $ torchrun --nnodes=4 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:29400 train.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_basic():
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    rank = dist.get_rank()
    print(f"Rank {rank} starts the basic example.")
    device_id = rank % torch.cuda.device_count() if has_gpu else "cpu"
    model = ToyModel().to(device_id)
    ddp_model = DDP(model, device_ids=[device_id] if has_gpu else None)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)

    optimizer.zero_grad()
    outputs = ddp_model(torch.randn(20, 10))
    labels = torch.randn(20, 5).to(device_id)
    loss_fn(outputs, labels).backward()
    optimizer.step()
    dist.destroy_process_group()
    print(f"Rank {rank} is done with the basic example.")


if __name__ == "__main__":
    demo_basic()
