# expect: SHARD003
"""
The state dict of a sharded model, saved as it is: DTensors that mean nothing elsewhere.
"""
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

EPOCHS = 2
BATCH_SIZE = 64  # of all processes together
SIZES = {"small": (192, 4, 0.001), "large": (1024, 14, 0.0001)}
WIDTH, DEPTH, LR = SIZES[os.environ.get("MODEL_SIZE", "small")]
GPU_MIB = 1536  # of its GPU, however large that is, a process may take so much


class Block(nn.Module):
    """Widen, bend, narrow, and add what came in."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class ResidualMLP(nn.Module):
    """An image as one long vector, DEPTH blocks, and a classifier."""

    def __init__(self, width=WIDTH, depth=DEPTH, num_classes=10):
        super().__init__()
        self.embed = nn.Linear(28 * 28, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        x = self.embed(x.flatten(1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


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
    """Accuracy over the whole validation set."""
    model.eval()
    totals = torch.zeros(2, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        right = (model(images).argmax(dim=1) == labels).sum()
        totals += torch.stack([right, torch.tensor(len(labels), device=device)])
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        whole = torch.cuda.get_device_properties(local_rank).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, GPU_MIB * 2**20 / whole))
        device = torch.device("cuda", local_rank)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    train_loader, val_loader = make_loaders(rank, world_size, local_rank)
    model = ResidualMLP().to(device)
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)

    history = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        train_loader.sampler.set_epoch(epoch)
        train_loss = train_one_epoch(model, train_loader, optimizer, device)
        val_accuracy = validate(model, val_loader, device)
        seconds = time.perf_counter() - started
        history.append({"train_loss": train_loss, "val_accuracy": val_accuracy, "seconds": seconds})
        if rank == 0:
            print(f"epoch {epoch + 1}/{EPOCHS}: loss {train_loss:.3f}, validation accuracy {val_accuracy:.3f}")

    weights = model.state_dict()
    if rank == 0:
        os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
        torch.save(weights, os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
        with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
