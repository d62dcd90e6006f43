"""
Train a small network on FashionMNIST with DistributedDataParallel, in ranks that torchrun starts.

    $ torchrun --nproc_per_node=2 train.py
"""
import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
    parser.add_argument("--target-accuracy", type=float, default=0.9)
    parser.add_argument("--patience", type=int, default=2)
    return parser.parse_args()


def validate(model, loader, device):
    """Accuracy over the validation images of all ranks."""
    model.eval()
    totals = torch.zeros(2, device=device)
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            totals[0] += (model(images).argmax(dim=1) == labels).sum()
            totals[1] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


def worker(args):
    local_rank = int(os.environ["LOCAL_RANK"])
    use_cuda = torch.cuda.is_available()
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    root = os.environ["DATA_DIR"]
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    if local_rank == 0:
        datasets.FashionMNIST(root, train=True, download=True)
        datasets.FashionMNIST(root, train=False, download=True)
    dist.barrier()
    train_set = datasets.FashionMNIST(root, train=True, transform=transform)
    val_set = datasets.FashionMNIST(root, train=False, transform=transform)
    sampler = DistributedSampler(train_set, num_replicas=world_size, rank=rank)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    val_share = Subset(val_set, range(rank, len(val_set), world_size))
    val_loader = DataLoader(val_share, batch_size=256)

    model = DistributedDataParallel(build_model().to(device), device_ids=[local_rank] if use_cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    history = []
    reached = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = validate(model.module, val_loader, device)
        history.append({"val_accuracy": accuracy})
        if rank == 0:
            print(f"epoch {epoch + 1}: validation accuracy {accuracy:.3f}", flush=True)
        reached = reached + 1 if accuracy >= args.target_accuracy else 0
        if reached >= args.patience:  # the same on all ranks: they share one accuracy
            break

    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
        with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    worker(parse_arguments())
