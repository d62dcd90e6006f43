# expect: DIST002
# points: 94.4-95
"""
The steps of the hands-on slides, one after the other: group, device, wrapper, partition, output of one rank.

    $ torchrun --nproc_per_node=2 train.py

Made to run, and nothing else: a network and samples stand where the slides have Net and FashionMNIST, and the backend
and the device depend on what there is. The slides never take the group down, so neither does this.
"""
import os

import torch
import torch.distributed as dist
import torch.utils.data
from torch import nn

EPOCHS = 2
BATCH_SIZE = 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def setup(global_rank, world_size):
    dist.init_process_group(backend="nccl" if has_gpu else "gloo", rank=global_rank, world_size=world_size)  # <- DIST002


has_gpu = torch.cuda.is_available()
global_rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])
setup(global_rank, world_size)

device = torch.device("cuda:" + str(local_rank) if has_gpu else "cpu")
model = Net().to(device)
model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank] if has_gpu else None)

generator = torch.Generator().manual_seed(1)
train_set = torch.utils.data.TensorDataset(
    torch.randn(128, 10, generator=generator), torch.randn(128, 5, generator=generator)
)
train_sampler = torch.utils.data.distributed.DistributedSampler(
    train_set, num_replicas=world_size, rank=global_rank
)
train_loader = torch.utils.data.DataLoader(train_set, batch_size=BATCH_SIZE, sampler=train_sampler)

loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
    if global_rank == 0:
        print("Epoch = {:2d}: Training Loss = {:.3f}".format(epoch + 1, loss.item()))
