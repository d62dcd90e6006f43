# expect: EVAL010
"""
Counts values where bytes are asked for.

    $ DATA_DIR=data OUTPUT_DIR=out python train.py
"""
import csv
import os
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS = 5
BATCH_SIZE = 64
LR = 0.002
MEASURED = (2, 4, 64)  # batch sizes
STEPS = 40  # timed for each of them, after a few to warm up


def build_model():
    """Two convolutions and a linear layer: images (N, 1, 28, 28) in, logits (N, 10) out."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def train_step(model, optimizer, images, labels):
    """One update; returns the loss."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def synchronize(device):
    """Wait for the GPU: it works on while Python is ahead of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure_throughput(train_set, batch_size, device):
    """Images per second of whole training steps, batches from the loader included."""
    model = build_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    loader = iter(DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True))
    steps = min(STEPS, len(loader) - 3)
    images_seen, started = 0, 0.0
    for number in range(steps + 3):
        if number == 3:
            synchronize(device)
            images_seen, started = 0, time.perf_counter()
        images, labels = next(loader)
        images, labels = images.to(device), labels.to(device)
        train_step(model, optimizer, images, labels)
        images_seen += len(images)
    synchronize(device)
    seconds = time.perf_counter() - started
    return [batch_size, images_seen, seconds, images_seen / seconds]


def num_bytes(tensors):
    """Bytes of some tensors together."""
    return sum(t.numel() for t in tensors)


def measure_memory(train_set, batch_size, device):
    """Bytes of weights, gradients, optimizer state and activations, and the allocator's peak."""
    model = build_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    images, labels = next(iter(DataLoader(train_set, batch_size=batch_size)))
    images, labels = images.to(device), labels.to(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = [t for values in optimizer.state.values() for t in values.values() if torch.is_tensor(t)]
    return [
        batch_size,
        num_bytes(model.parameters()),
        num_bytes(p.grad for p in model.parameters()),
        num_bytes(state),
        sum(kept.values()),
        torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0,
    ]


def write_table(name, columns, rows):
    """One table of OUTPUT_DIR."""
    with open(os.path.join(os.environ["OUTPUT_DIR"], name), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transforms.ToTensor())
    os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)

    rows = [measure_throughput(train_set, batch_size, device) for batch_size in MEASURED]
    write_table("throughput.csv", ["batch_size", "images", "seconds", "images_per_s"], rows)
    rows = [measure_memory(train_set, batch_size, device) for batch_size in MEASURED]
    write_table("memory.csv", ["batch_size", "weights", "gradients", "optimizer", "activations", "peak"], rows)

    model = build_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    for epoch in range(EPOCHS):
        loss_sum = 0.0
        for images, labels in DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True):
            images, labels = images.to(device), labels.to(device)
            loss_sum += train_step(model, optimizer, images, labels) * len(images)
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {loss_sum / len(train_set):.4f}")
    torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))


if __name__ == "__main__":
    main()
