# expect: DATA002
"""
All epochs deal the samples out alike.
"""
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

EPOCHS = 2
BATCH_SIZE = 64  # of all processes together
LR = 0.002


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
        train_set, batch_size=BATCH_SIZE // world_size, sampler=DistributedSampler(train_set)
    )
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)
    return train_loader, val_loader


def train_one_epoch(model, loader, optimizer, device):
    """Mean loss over the samples of all processes."""
    model.train()
    totals = torch.zeros(2, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        totals += torch.stack([loss.detach() * len(labels), torch.tensor(len(labels), device=device)])
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


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
    dist.all_reduce(totals)
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
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)

    history = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        train_loss = train_one_epoch(model, train_loader, optimizer, device)
        val_loss, val_accuracy = validate(model, val_loader, device)
        history.append({
            "train_loss": train_loss,
            "val_loss": val_loss,
            "val_accuracy": val_accuracy,
            "seconds": time.perf_counter() - started,
        })
        if rank == 0:
            print(
                f"epoch {epoch + 1}/{EPOCHS}: train loss {train_loss:.3f}, "
                f"validation loss {val_loss:.3f}, accuracy {val_accuracy:.3f}"
            )

    if rank == 0:
        os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
        torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
        with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
