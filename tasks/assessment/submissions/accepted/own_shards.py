"""A Wide-ResNet on all GPUs, with a division of the data that is written out here.

    torchrun --nproc_per_node=2 train.py

Every epoch all ranks draw the same permutation, from a generator that the epoch seeds. Rank r of n takes its elements
r, r + n, r + 2n, …, and the few at the end that do not fill a round of all ranks wait for the next permutation.
"""
import argparse
import csv
import json
import os
import time
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler
from torchvision import datasets, transforms

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


RANK, LOCAL_RANK, WORLD_SIZE = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device(f"cuda:{LOCAL_RANK}" if ON_GPU else "cpu")


class EpochShard(Sampler):
    """This rank's elements of one shuffle that is common to all ranks; the shuffle is another one in every epoch."""

    def __init__(self, num_samples, shuffle):
        self.num_samples, self.shuffle, self.epoch = num_samples, shuffle, 0

    def __iter__(self):
        if not self.shuffle:
            return iter(range(RANK, self.num_samples, WORLD_SIZE))
        order = torch.randperm(self.num_samples, generator=torch.Generator().manual_seed(1000 + self.epoch))
        return iter(order[: len(self) * WORLD_SIZE][RANK::WORLD_SIZE].tolist())

    def __len__(self):
        if self.shuffle:  # in training all ranks must take the same number of steps
            return self.num_samples // WORLD_SIZE
        return len(range(RANK, self.num_samples, WORLD_SIZE))


@contextmanager
def one_rank_of_a_machine_first():
    """Local rank 0 goes through alone; the others follow when it has finished."""
    if LOCAL_RANK != 0:
        dist.barrier()
    yield
    if LOCAL_RANK == 0:
        dist.barrier()


def say(*words):
    if RANK == 0:
        print(*words, flush=True)


def sum_over_ranks(*numbers):
    packed = torch.tensor(numbers, dtype=torch.float64, device=DEVICE)
    dist.all_reduce(packed, op=dist.ReduceOp.SUM)
    return packed.tolist()


def load(train, *first):
    steps = [*first, transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    with one_rank_of_a_machine_first():
        return datasets.FashionMNIST(
            os.environ["DATA_DIR"], train=train, download=LOCAL_RANK == 0, transform=transforms.Compose(steps)
        )


def train(model, loader, optimizer, scheduler):
    model.train()
    loss_sum, num_samples = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(DEVICE), labels.to(DEVICE)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        loss_sum, num_samples = loss_sum + loss.detach() * len(labels), num_samples + len(labels)
    loss_sum, num_samples = sum_over_ranks(float(loss_sum), num_samples)
    return loss_sum / num_samples


def validate(network, loader):
    for buffer in network.buffers():  # the running means of BatchNorm are each rank's own
        dist.broadcast(buffer, 0)
    network.eval()
    loss_sum, num_correct, num_samples = 0.0, 0, 0
    with torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(DEVICE), labels.to(DEVICE)
            logits = network(images)
            loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
            num_correct += (logits.argmax(1) == labels).sum().item()
            num_samples += len(labels)
    loss_sum, num_correct, num_samples = sum_over_ranks(loss_sum, num_correct, num_samples)
    return loss_sum / num_samples, num_correct / num_samples


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


def main(args):
    train_set, val_set = load(True, transforms.RandomCrop(28, padding=2)), load(False)
    shard = EpochShard(len(train_set), shuffle=True)
    train_loader = DataLoader(train_set, batch_size=args.batch_size // WORLD_SIZE, sampler=shard)
    val_loader = DataLoader(val_set, batch_size=256, sampler=EpochShard(len(val_set), shuffle=False))

    network = WideResNet().to(DEVICE)
    model = DDP(network, device_ids=[LOCAL_RANK] if ON_GPU else None)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    steps_per_epoch = len(train_loader)
    scheduler = optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            optim.lr_scheduler.LinearLR(optimizer, start_factor=0.05, total_iters=2 * steps_per_epoch),
            optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=(args.epochs - 2) * steps_per_epoch),
        ],
        milestones=[2 * steps_per_epoch],
    )

    history, best, training_began = [], -1.0, time.perf_counter()
    for epoch in range(args.epochs):
        shard.epoch = epoch
        began = time.perf_counter()
        train_loss = train(model, train_loader, optimizer, scheduler)
        val_loss, val_accuracy = validate(network, val_loader)
        row = dict(train_loss=train_loss, val_loss=val_loss, val_accuracy=val_accuracy,
                   seconds=time.perf_counter() - began)
        history.append(row)
        say(f"[{epoch + 1:2}/{args.epochs}]", "  ".join(f"{name} {value:.4f}" for name, value in row.items()))
        if val_accuracy > best:
            best = val_accuracy
            if RANK == 0:
                torch.save(network.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))

    if RANK == 0:
        with open(os.path.join(os.environ["OUTPUT_DIR"], "log.csv"), "w", newline="") as file:
            table = csv.DictWriter(file, list(history[0]))
            table.writeheader()
            table.writerows(history)
        with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
        took = time.perf_counter() - training_began
        batch_size = args.batch_size // WORLD_SIZE
        write_comparison(os.environ["OUTPUT_DIR"], WORLD_SIZE, batch_size, args.lr, args.epochs, took, best)
    dist.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=0.05)
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if ON_GPU else "gloo")
    try:
        main(parser.parse_args())
    finally:
        dist.destroy_process_group()
