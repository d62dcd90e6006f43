# expect: EVAL001
"""
Each process scores its share of the validation set, and rank 0's is reported as if it were all.
"""
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

EPOCHS = 12
WARMUP_EPOCHS = 3
BASE_BATCH_SIZE = 16
BASE_LR = 0.006  # good for BASE_BATCH_SIZE
GLOBAL_BATCH_SIZE = 128  # of all processes together: 8 times as much
MOMENTUM = 0.9


class Net(nn.Module):
    """Two convolutions, each halving the resolution, and two linear layers."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(16 * 7 * 7, 64)
        self.fc2 = nn.Linear(64, num_classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def make_loaders(rank, world_size, local_rank):
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    if local_rank == 0:  # one process per machine fetches what is missing
        for train in (True, False):
            datasets.FashionMNIST(os.environ["DATA_DIR"], train=train, download=True)
    dist.barrier()
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transform)
    val_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=False, transform=transform)
    train_loader = DataLoader(
        train_set, batch_size=GLOBAL_BATCH_SIZE // world_size, sampler=DistributedSampler(train_set)
    )
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)
    return train_loader, val_loader


def train_one_epoch(model, loader, optimizer, scheduler, device):
    """Mean loss and accuracy over the samples of all processes."""
    model.train()
    totals = torch.zeros(3, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        right = (logits.argmax(dim=1) == labels).sum()
        totals += torch.stack([loss.detach() * len(labels), right, torch.tensor(len(labels), device=device)])
    dist.all_reduce(totals)
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


@torch.no_grad()
def validate(model, loader, device):
    """Mean loss and accuracy over the whole validation set."""
    model.eval()
    totals = torch.zeros(3, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model.module(images)
        loss = F.cross_entropy(logits, labels, reduction="sum")
        right = (logits.argmax(dim=1) == labels).sum()
        totals += torch.stack([loss, right, torch.tensor(len(labels), device=device)])
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    train_loader, val_loader = make_loaders(rank, world_size, local_rank)
    model = DistributedDataParallel(
        Net().to(device), device_ids=[local_rank] if device.type == "cuda" else None
    )
    k = GLOBAL_BATCH_SIZE / BASE_BATCH_SIZE
    optimizer = torch.optim.SGD(model.parameters(), lr=BASE_LR * k, momentum=MOMENTUM)
    steps_per_epoch = len(train_loader)
    climb = LinearLR(optimizer, start_factor=1 / k, total_iters=WARMUP_EPOCHS * steps_per_epoch)
    decay = CosineAnnealingLR(optimizer, T_max=(EPOCHS - WARMUP_EPOCHS) * steps_per_epoch, eta_min=BASE_LR)
    scheduler = SequentialLR(optimizer, [climb, decay], milestones=[WARMUP_EPOCHS * steps_per_epoch])

    history = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        train_loader.sampler.set_epoch(epoch)
        train_loss, train_accuracy = train_one_epoch(model, train_loader, optimizer, scheduler, device)
        val_loss, val_accuracy = validate(model, val_loader, device)
        history.append({
            "train_loss": train_loss,
            "train_accuracy": train_accuracy,
            "val_loss": val_loss,
            "val_accuracy": val_accuracy,
            "seconds": time.perf_counter() - started,
        })
        if rank == 0:
            print(
                f"epoch {epoch + 1}/{EPOCHS}: lr {optimizer.param_groups[0]['lr']:.4f}, "
                f"training {train_loss:.3f} / {train_accuracy:.3f}, validation {val_loss:.3f} / {val_accuracy:.3f}"
            )

    if rank == 0:
        os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
        torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
        with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
