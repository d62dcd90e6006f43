"""
Train a Wide-ResNet with a batch that grows with the number of GPUs.

    $ DATA_DIR=data OUTPUT_DIR=out torchrun --nproc_per_node=2 train.py

64 samples on each rank, as long as ten batches or more make an epoch. By the linear scaling rule a batch k times as
large takes k times the learning rate. It rises to that over the first quarter of the run, because so large a step on
untrained weights diverges, and falls to zero afterwards.
"""
import argparse
import csv
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms as T
from torchvision.datasets import FashionMNIST

DEPTH = 10  # convolutions on the longest path: 6 for each block of a group, and 4 besides
WIDTH = 2  # channels, as a multiple of the plain residual network's
BASE_CHANNELS = 8
NUM_CLASSES = 10

# Runs made before this one on the same machine: ranks, batch of each, peak learning rate, epochs, seconds, accuracy.
RUNS = [
    (1, 64, 0.002, 3, 18.4, 0.393),
    (1, 64, 0.05, 3, 18.1, 0.877),
    (2, 32, 0.05, 3, 10.9, 0.869),
]


class Block(nn.Module):
    """Two 3x3 convolutions around which the input is carried past (pre-activation residual block)."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        same_shape = stride == 1 and in_channels == out_channels
        self.skip = nn.Identity() if same_shape else nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):
        hidden = self.conv1(F.relu(self.norm1(x)))
        hidden = self.conv2(F.relu(self.norm2(hidden)))
        return self.skip(x) + hidden


class WideResNet(nn.Module):
    """Three groups of residual blocks, each at half the resolution of the one before."""

    def __init__(self, depth=DEPTH, width=WIDTH, num_classes=NUM_CLASSES):
        super().__init__()
        self.stem = nn.Conv2d(1, BASE_CHANNELS, 3, padding=1, bias=False)
        blocks, channels = [], BASE_CHANNELS
        for group in range(3):
            for number in range((depth - 4) // 6):
                out_channels = BASE_CHANNELS * width * 2**group
                blocks.append(Block(channels, out_channels, stride=2 if group > 0 and number == 0 else 1))
                channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))


class Meter:
    """A sum of losses, of right answers and of samples, kept on the device until an epoch is over."""

    def __init__(self, device):
        self.sums = torch.zeros(3, device=device)

    def add(self, loss, logits, labels):
        right = (logits.detach().argmax(dim=1) == labels).sum()
        self.sums += torch.stack([loss.detach() * len(labels), right, right.new_tensor(len(labels))])

    def over_all_ranks(self):
        """Mean loss and accuracy; every rank has to call this."""
        dist.all_reduce(self.sums)
        loss, right, count = self.sums.tolist()
        return loss / count, right / count


def run_epoch(model, loader, device, optimizer=None, scheduler=None):
    """Train where there is an optimizer, else validate."""
    model.train(optimizer is not None)
    meter = Meter(device)
    with torch.set_grad_enabled(optimizer is not None):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
            meter.add(loss, logits, labels)
    return meter.over_all_ranks()


def train(args, device, rank, world_size):
    root = os.environ["DATA_DIR"]
    plain = [T.ToTensor(), T.Normalize((0.5,), (0.5,))]
    train_set = FashionMNIST(root, train=True, transform=T.Compose([T.RandomCrop(28, padding=2), *plain]))
    val_set = FashionMNIST(root, train=False, transform=T.Compose(plain))
    sampler = DistributedSampler(train_set, shuffle=True, seed=7)
    batch_size = min(args.batch_size, len(train_set) // (10 * world_size))
    train_loader = DataLoader(train_set, batch_size, sampler=sampler, pin_memory=device.type == "cuda")
    # A sampler would repeat samples to make all parts equally long; a slice with a stride does not.
    val_loader = DataLoader(Subset(val_set, range(len(val_set))[rank::world_size]), 256)

    model = WideResNet().to(device)
    ddp = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    peak = args.lr * batch_size * world_size / args.batch_size
    optimizer = SGD(ddp.parameters(), lr=peak, momentum=args.momentum, weight_decay=args.weight_decay,
                    nesterov=True)
    scheduler = OneCycleLR(
        optimizer, max_lr=peak, epochs=args.epochs, steps_per_epoch=len(train_loader), pct_start=0.25,
        cycle_momentum=False,
    )

    rows, best, began = [], 0.0, time.monotonic()
    for epoch in range(args.epochs):
        start = time.monotonic()
        train_loader.sampler.set_epoch(epoch)
        train_loss, train_accuracy = run_epoch(ddp, train_loader, device, optimizer, scheduler)
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)
        val_loss, val_accuracy = run_epoch(model, val_loader, device)
        rows.append({"epoch": epoch, "train_loss": train_loss, "train_accuracy": train_accuracy,
                     "val_loss": val_loss, "val_accuracy": val_accuracy, "seconds": time.monotonic() - start})
        if rank != 0:
            continue
        print(" | ".join(f"{key} {value:.3g}" for key, value in rows[-1].items()), flush=True)
        if val_accuracy > best:
            best = val_accuracy
            torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
    return rows, (world_size, batch_size, peak, args.epochs, time.monotonic() - began, best)


def write_logs(rows, folder):
    with open(os.path.join(folder, "log.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(folder, "metrics.json"), "w") as file:
        json.dump({"schema": 1, "epochs": rows}, file)


def write_comparison(folder, *this_run):
    runs = [*RUNS, this_run]
    best = max(runs, key=lambda run: run[5])
    near = min((run for run in runs if run[5] >= best[5] - 0.01), key=lambda run: run[4])
    epoch = {run: run[4] / run[3] for run in runs}
    alone = min(epoch[run] for run in runs if run[0] == 1)
    together = min((epoch[run] for run in runs if run[0] > 1), default=alone)
    for name, rows in {
        "runs.csv": ["ranks batch_size learning_rate epochs seconds accuracy".split(), *runs],
        "answers.csv": [
            ["most_accurate", "quickest_of_the_best", "speedup"],
            [runs.index(best) + 1, runs.index(near) + 1, alone / together],
        ],
    }.items():
        with open(os.path.join(folder, name), "w", newline="") as file:
            csv.writer(file).writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="samples on each rank")
    parser.add_argument("--lr", type=float, default=0.08, help="for one rank's batch")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    args = parser.parse_args()

    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group(backend="nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group(backend="gloo")
    rows, this_run = train(args, device, dist.get_rank(), dist.get_world_size())
    if dist.get_rank() == 0:
        write_logs(rows, os.environ["OUTPUT_DIR"])
        write_comparison(os.environ["OUTPUT_DIR"], *this_run)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
