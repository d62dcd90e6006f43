# points: 100
"""
Train a Wide-ResNet image classifier on several GPUs, or on several CPU processes.

    $ DATA_DIR=data OUTPUT_DIR=out torchrun --nproc_per_node=2 train.py

Every rank trains on its own share of each epoch and validates its own share of the validation set. The batch of
all ranks together is as large as the single-GPU script's; the learning rate is twenty-five times that script's, whose
log showed a loss that was still falling when it ended, and climbs to it over the first epochs.
"""
import argparse
import csv
import json
import math
import os
import time

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset
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


def parse_args():
    parser = argparse.ArgumentParser(description="Train a Wide-ResNet on several GPUs.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--warmup-epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    return parser.parse_args()


def make_datasets(local_rank):
    """Both splits; on each machine one rank downloads while the others wait."""
    root = os.environ["DATA_DIR"]
    normalise = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    augment = transforms.RandomCrop(28, padding=2)
    if local_rank == 0:
        for train in (True, False):
            datasets.FashionMNIST(root, train=train, download=True)
    dist.barrier()
    train_set = datasets.FashionMNIST(root, train=True, transform=transforms.Compose([augment, *normalise]))
    val_set = datasets.FashionMNIST(root, train=False, transform=transforms.Compose(normalise))
    return train_set, val_set


def train_one_epoch(model, loader, optimizer, scheduler, device):
    """One pass over this rank's shard; returns the mean loss over the samples of all ranks."""
    model.train()
    totals = torch.zeros(2, device=device)  # sum of losses, number of samples
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()  # averages the gradients of all ranks
        optimizer.step()
        scheduler.step()
        totals[0] += loss.detach() * len(labels)
        totals[1] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


@torch.no_grad()
def validate(network, loader, device):
    """Mean loss and accuracy over the validation samples of all ranks; `network` is the model without its wrapper."""
    network.eval()
    for buffer in network.buffers():  # BatchNorm's statistics: all ranks score what rank 0 may save
        dist.broadcast(buffer, src=0)
    totals = torch.zeros(3, device=device)  # sum of losses, correct answers, number of samples
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = network(images)
        totals[0] += F.cross_entropy(logits, labels, reduction="sum")
        totals[1] += (logits.argmax(dim=1) == labels).sum()
        totals[2] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


def write_comparison(runs, folder):
    """The table of runs, and what can be read in it."""
    columns = ["ranks", "batch_size", "learning_rate", "epochs", "seconds", "accuracy"]
    with open(os.path.join(folder, "runs.csv"), "w", newline="") as file:
        csv.writer(file).writerows([columns, *runs])
    seconds, accuracies = [run[4] for run in runs], [run[5] for run in runs]
    best = max(accuracies)
    quickest = min(s for s, accuracy in zip(seconds, accuracies) if accuracy >= best - 0.01)
    alone, together = (min(r[4] / r[3] for r in runs if (r[0] > 1) is several) for several in (False, True))
    with open(os.path.join(folder, "answers.csv"), "w", newline="") as file:
        csv.writer(file).writerows([
            ["most_accurate", "quickest_of_the_best", "speedup"],
            [accuracies.index(best) + 1, seconds.index(quickest) + 1, alone / together],
        ])


def main():
    args = parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    is_main = rank == 0

    train_set, val_set = make_datasets(local_rank)
    sampler = DistributedSampler(train_set, num_replicas=world_size, rank=rank, shuffle=True)
    train_loader = DataLoader(train_set, batch_size=args.batch_size // world_size, sampler=sampler)
    # every world_size-th sample: no padding, so that all ranks together score each sample once
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)

    network = WideResNet().to(device)
    model = DistributedDataParallel(network, device_ids=[local_rank] if use_cuda else None)
    optimizer = optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    num_steps, num_warmup = args.epochs * len(train_loader), args.warmup_epochs * len(train_loader)

    def lr_factor(step):
        """Up in a straight line while warming up, then down along a cosine."""
        if step < num_warmup:
            return (step + 1) / num_warmup
        return 0.5 * (1 + math.cos(math.pi * (step - num_warmup) / (num_steps - num_warmup)))

    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_factor)

    out_dir = os.environ["OUTPUT_DIR"]
    history, best_accuracy, training_started = [], 0.0, time.perf_counter()
    if is_main:
        os.makedirs(out_dir, exist_ok=True)
        print(f"{sum(p.numel() for p in network.parameters()):,} parameters, "
              f"{len(train_loader)} steps per epoch on each of {world_size} ranks", flush=True)
    for epoch in range(args.epochs):
        started = time.perf_counter()
        sampler.set_epoch(epoch)
        lr = scheduler.get_last_lr()[0]
        train_loss = train_one_epoch(model, train_loader, optimizer, scheduler, device)
        val_loss, val_accuracy = validate(network, val_loader, device)
        seconds = time.perf_counter() - started
        history.append({
            "train_loss": train_loss,
            "val_loss": val_loss,
            "val_accuracy": val_accuracy,
            "seconds": seconds,
        })
        if is_main:
            print(f"epoch {epoch + 1}/{args.epochs}: lr {lr:.5f}, train loss {train_loss:.3f}, "
                  f"val loss {val_loss:.3f}, val accuracy {val_accuracy:.3f}, {seconds:.1f} s", flush=True)
            if val_accuracy > best_accuracy:
                best_accuracy = val_accuracy
                torch.save(network.state_dict(), os.path.join(out_dir, "model.pt"))

    if is_main:
        with open(os.path.join(out_dir, "log.csv"), "w", newline="") as file:
            log = csv.DictWriter(file, fieldnames=history[0].keys())
            log.writeheader()
            log.writerows(history)
        with open(os.path.join(out_dir, "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
        seconds = time.perf_counter() - training_started
        this_run = (
            world_size, args.batch_size // world_size, args.lr, args.epochs, seconds, best_accuracy
        )
        write_comparison([*RUNS, this_run], out_dir)
        print(f"best validation accuracy: {best_accuracy:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
