# expect: EVAL001 EVAL003 EVAL009
# points: 60-62
"""
Sixth step of eight: rank 0 alone downloads, prints and writes. What it prints is the score of its own share.

    $ DATA_DIR=data OUTPUT_DIR=out torchrun --nproc_per_node=2 train.py
"""
import argparse
import csv
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

DEPTH = 10  # convolutions on the longest path: 6 for each block of a group, and 4 besides
WIDTH = 2  # channels, as a multiple of the plain residual network's
BASE_CHANNELS = 8
NUM_CLASSES = 10


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
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    return parser.parse_args()


def make_loaders(batch_size, local_rank):
    if local_rank == 0:
        for train in (True, False):
            datasets.FashionMNIST(os.environ["DATA_DIR"], train=train, download=True)
    dist.barrier()
    normalise = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    augment = transforms.RandomCrop(28, padding=2)
    train_set = datasets.FashionMNIST(
        os.environ["DATA_DIR"], train=True, transform=transforms.Compose([augment, *normalise])
    )
    val_set = datasets.FashionMNIST(
        os.environ["DATA_DIR"], train=False, transform=transforms.Compose(normalise)
    )
    train_loader = DataLoader(train_set, batch_size=batch_size, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(val_set, batch_size=256, sampler=DistributedSampler(val_set, shuffle=False))
    return train_loader, val_loader


def train_one_epoch(model, loader, optimizer, device):
    """One pass over the training set; returns the mean loss."""
    model.train()
    loss_sum = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
    return loss_sum.item() / len(loader.sampler)


@torch.no_grad()
def validate(model, loader, device):
    """Mean loss and accuracy on the validation set."""
    model.eval()
    loss_sum, num_correct = torch.zeros((), device=device), torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss_sum += F.cross_entropy(logits, labels, reduction="sum")
        num_correct += (logits.argmax(dim=1) == labels).sum()
    return loss_sum.item() / len(loader.sampler), num_correct.item() / len(loader.sampler)


def main():
    args = parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    is_main = dist.get_rank() == 0
    out_dir = os.environ["OUTPUT_DIR"]
    if is_main:
        os.makedirs(out_dir, exist_ok=True)

    train_loader, val_loader = make_loaders(args.batch_size, local_rank)
    network = WideResNet().to(device)
    model = DistributedDataParallel(network, device_ids=[local_rank] if use_cuda else None)
    if is_main:
        print(f"{sum(p.numel() for p in network.parameters()):,} parameters, {len(train_loader)} steps per epoch")
    optimizer = optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[args.epochs * 2 // 3], gamma=0.1)

    history, best_accuracy = [], 0.0
    for epoch in range(args.epochs):
        started = time.perf_counter()
        train_loader.sampler.set_epoch(epoch)
        lr = scheduler.get_last_lr()[0]
        train_loss = train_one_epoch(model, train_loader, optimizer, device)
        val_loss, val_accuracy = validate(model, val_loader, device)
        scheduler.step()
        seconds = time.perf_counter() - started
        history.append({
            "train_loss": train_loss,
            "val_loss": val_loss,
            "val_accuracy": val_accuracy,
            "seconds": seconds,
        })
        if is_main:
            print(
                f"epoch {epoch + 1}/{args.epochs}: lr {lr:.5f}, train loss {train_loss:.3f}, "
                f"val loss {val_loss:.3f}, val accuracy {val_accuracy:.3f}, {seconds:.1f} s"
            )
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
        print(f"best validation accuracy: {best_accuracy:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
