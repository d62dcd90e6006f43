# My own sampler instead of DistributedSampler: shuffle all indices with a seed that every rank knows,
# then take every world-th one. Flat script, no functions.
#
#   torchrun --nproc_per_node=2 train.py

import json
import os
from datetime import timedelta
from time import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torchvision
import torchvision.transforms as T
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them (pre-activation residual block)."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        return out + self.shortcut(x)


class WideResNet(nn.Module):
    """A stem, three residual blocks, pooling and one linear layer; `width` multiplies the channels."""

    def __init__(self, width=2, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.block1 = Block(8, 8 * width, stride=1)
        self.block2 = Block(8 * width, 16 * width, stride=2)
        self.block3 = Block(16 * width, 32 * width, stride=2)
        self.bn = nn.BatchNorm2d(32 * width)
        self.fc = nn.Linear(32 * width, num_classes)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.stem(x))))
        x = F.relu(self.bn(x)).mean(dim=(2, 3))
        return self.fc(x)

class RankStridedSampler(Sampler):
    """Shard `rank` of `world`: reshuffled on each pass, the same permutation on all ranks, equal lengths."""

    def __init__(self, length, rank, world, seed=1234):
        self.length, self.rank, self.world, self.seed = length, rank, world, seed
        self.epoch = 0

    def __len__(self):
        return self.length // self.world

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed + self.epoch)
        self.epoch += 1  # the next pass shuffles anew, nobody has to remember a set_epoch
        order = torch.randperm(self.length, generator=g)
        order = order[: len(self) * self.world]  # the odd one out sits out this epoch
        return iter(order[self.rank :: self.world].tolist())


class EvalSampler(Sampler):
    """Rank r takes samples r, r + world, r + 2 world ...; lengths may differ by one, nothing is padded."""

    def __init__(self, length, rank, world):
        self.indices = range(rank, length, world)

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        return iter(self.indices)


rank = int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
local = int(os.environ["LOCAL_RANK"])
use_cuda = torch.cuda.is_available()
if use_cuda:
    torch.cuda.set_device(local)
dev = torch.device(f"cuda:{local}" if use_cuda else "cpu")
dist.init_process_group("nccl" if use_cuda else "gloo", timeout=timedelta(minutes=5))


def log(*args):
    if rank == 0:
        print(*args, flush=True)


tf = T.Compose([T.ToTensor(), T.Normalize([0.5], [0.5])])
# the first rank of each machine goes first, everybody else waits until the files are there
if local != 0:
    dist.barrier()
train_ds = torchvision.datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=tf, download=local == 0)
val_ds = torchvision.datasets.FashionMNIST(os.environ["DATA_DIR"], train=False, transform=tf, download=local == 0)
if local == 0:
    dist.barrier()

epochs, per_rank_batch = 10, max(1, 128 // world)
train_dl = DataLoader(train_ds, per_rank_batch, sampler=RankStridedSampler(len(train_ds), rank, world), drop_last=True)
val_dl = DataLoader(val_ds, 128, sampler=EvalSampler(len(val_ds), rank, world))

net = DDP(WideResNet().to(dev), device_ids=[local] if use_cuda else None)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
total, warmup = epochs * len(train_dl), len(train_dl)
sched = torch.optim.lr_scheduler.SequentialLR(
    opt,
    [
        torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=warmup),
        torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=total - warmup),
    ],
    milestones=[warmup],
)
log(f"{world} ranks, {len(train_dl)} steps per epoch, {sum(p.numel() for p in net.parameters()):,} parameters")

curve = []
for epoch in range(epochs):
    t0 = time()
    net.train()
    loss_sum = torch.zeros(1, device=dev)
    for x, y in train_dl:
        x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
        loss_sum += loss.detach()
    loss_sum /= len(train_dl)
    dist.all_reduce(loss_sum)  # all ranks take equally many full batches, so the mean of means is exact
    loss_sum /= world

    net.eval()
    # rank 0's running statistics are the ones that go into the checkpoint, so score with those
    for b in net.module.buffers():
        dist.broadcast(b, 0)
    stats = torch.zeros(3, dtype=torch.float64, device=dev)
    with torch.no_grad():
        for x, y in val_dl:
            x, y = x.to(dev), y.to(dev)
            out = net.module(x)
            stats += torch.stack([
                F.cross_entropy(out, y, reduction="sum").double(),
                (out.argmax(1) == y).sum().double(),
                torch.tensor(len(y), dtype=torch.float64, device=dev),
            ])
    dist.all_reduce(stats)
    v_loss, v_acc = (stats[:2] / stats[2]).tolist()
    curve.append(dict(train_loss=loss_sum.item(), val_loss=v_loss, val_accuracy=v_acc, seconds=time() - t0))
    log(f"epoch {epoch}  loss {curve[-1]['train_loss']:.4f}  val_loss {v_loss:.4f}  val_acc {v_acc:.4f}")

if rank == 0:
    folder = os.environ["OUTPUT_DIR"]
    torch.save(net.module.state_dict(), f"{folder}/model.pt")
    json.dump({"schema": 1, "epochs": curve}, open(f"{folder}/metrics.json", "w"))
dist.barrier()
dist.destroy_process_group()
