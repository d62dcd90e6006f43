#!/usr/bin/env python
"""Data-parallel training with gradient accumulation and mixed precision.

Each optimizer step is made of ACCUMULATE micro-batches. Only the last one of a step exchanges gradients
(`no_sync` keeps the others local), and the forward passes run under autocast in bfloat16.

Launch: torchrun --nproc_per_node=<ranks> train.py
"""
import argparse
import contextlib
import json
import os
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.datasets import FashionMNIST
from torchvision.transforms import v2


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

def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--micro-batch", type=int, default=64, help="samples of all ranks in one forward pass")
    parser.add_argument("--accumulate", type=int, default=2, help="micro-batches per optimizer step")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--full-precision", action="store_true")
    return parser.parse_args()


class Meter:
    """Sums on this rank, averages over all of them."""

    def __init__(self, device, *names):
        self.names = names
        self.sums = torch.zeros(len(names) + 1, dtype=torch.float64, device=device)

    def add(self, count, **values):
        for position, name in enumerate(self.names):
            self.sums[position] += values[name].double()
        self.sums[-1] += count

    def averages(self):
        dist.all_reduce(self.sums, op=dist.ReduceOp.SUM)
        return {name: (self.sums[i] / self.sums[-1]).item() for i, name in enumerate(self.names)}


def train_epoch(args, ddp, loader, optimizer, scheduler, device):
    ddp.train()
    meter = Meter(device, "train_loss")
    optimizer.zero_grad(set_to_none=True)
    num_micro_batches = len(loader)
    for number, (x, y) in enumerate(loader, start=1):
        x, y = x.to(device), y.to(device)
        last_of_step = number % args.accumulate == 0 or number == num_micro_batches
        # the forward pass must stand inside no_sync too: it is there that DDP decides whether to exchange
        with contextlib.nullcontext() if last_of_step else ddp.no_sync():
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=not args.full_precision):
                loss = F.cross_entropy(ddp(x), y)
            (loss / args.accumulate).backward()
        meter.add(len(y), train_loss=loss.detach() * len(y))
        if last_of_step:
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), max_norm=5.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
    return meter.averages()


@torch.inference_mode()
def validate(network, loader, device):
    network.eval()
    meter = Meter(device, "val_loss", "val_accuracy")
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        scores = network(x)
        meter.add(
            len(y),
            val_loss=F.cross_entropy(scores, y, reduction="sum"),
            val_accuracy=(scores.argmax(dim=-1) == y).sum(),
        )
    return meter.averages()


def main():
    args = parse_args()
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend=backend, init_method="env://")
    rank, world_size, local_rank = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)

    data_dir = os.environ["DATA_DIR"]
    to_tensor = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
    if local_rank == 0:
        for train in (True, False):
            FashionMNIST(data_dir, train=train, download=True)
    dist.barrier()
    train_data = FashionMNIST(data_dir, train=True, transform=to_tensor)
    val_data = FashionMNIST(data_dir, train=False, transform=to_tensor)
    val_share = torch.utils.data.Subset(val_data, list(range(len(val_data)))[rank::world_size])

    sampler = DistributedSampler(train_data, shuffle=True, seed=7, drop_last=True)
    train_loader = DataLoader(train_data, batch_size=args.micro_batch // world_size, sampler=sampler)
    val_loader = DataLoader(val_share, batch_size=200)

    network = WideResNet().to(device)
    ddp = DistributedDataParallel(network, device_ids=[local_rank] if backend == "nccl" else None,
                                  gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    steps_per_epoch = -(-len(train_loader) // args.accumulate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, args.lr, epochs=args.epochs, steps_per_epoch=steps_per_epoch, cycle_momentum=False
    )

    records = []
    for epoch in range(args.epochs):
        tic = time.monotonic()
        train_loader.sampler.set_epoch(epoch)
        record = train_epoch(args, ddp, train_loader, optimizer, scheduler, device)
        for statistic in network.buffers():
            dist.broadcast(statistic, src=0)
        record |= validate(network, val_loader, device)
        record["seconds"] = time.monotonic() - tic
        records.append(record)
        if rank == 0:
            print(f"[{epoch + 1:02d}/{args.epochs}] " + "  ".join(f"{k}={v:.4f}" for k, v in record.items()))

    if rank == 0:
        output = pathlib.Path(os.environ["OUTPUT_DIR"])
        output.mkdir(parents=True, exist_ok=True)
        torch.save({k: v.cpu() for k, v in ddp.module.state_dict().items()}, output / "model.pt")
        (output / "metrics.json").write_text(json.dumps({"schema": 1, "epochs": records}, indent=1))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
