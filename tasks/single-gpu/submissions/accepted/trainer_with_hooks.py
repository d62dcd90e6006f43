"""
A small classifier on whatever device there is, in a class; activations are the outputs of all layers.

    $ DATA_DIR=data OUTPUT_DIR=out python train.py
"""
import csv
import itertools
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
STEPS = 16  # timed for each of them, after a few to warm up


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


class Trainer:
    """A network, its optimizer and its device."""

    def __init__(self, device):
        self.device = device
        self.model = build_model().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LR)
        self.layer_bytes = 0

    def step(self, images, labels):
        """One update with a batch that may lie anywhere."""
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        return train_step(self.model, self.optimizer, images, labels)

    def count_outputs(self):
        """From here on, add up the bytes of every layer's output."""
        for layer in self.model:
            layer.register_forward_hook(self._count)

    def _count(self, layer, inputs, output):
        self.layer_bytes += 0 if isinstance(layer, nn.Flatten) else output.nbytes

    def account(self):
        """Bytes of weights, gradients, optimizer state and activations so far."""
        parameters = list(self.model.parameters())
        averages = [self.optimizer.state[p][key] for p in parameters for key in ("exp_avg", "exp_avg_sq")]
        return [
            sum(p.nbytes for p in parameters),
            sum(p.grad.nbytes for p in parameters),
            sum(a.nbytes for a in averages),
            self.layer_bytes,
        ]


def measure(train_set, batch_size, device):
    """A row for each table."""
    trainer = Trainer(device)
    batches = list(itertools.islice(DataLoader(train_set, batch_size=batch_size, drop_last=True), STEPS + 2))
    for images, labels in batches[:2]:
        trainer.step(images, labels)
    started = time.perf_counter()
    for images, labels in batches[2:]:
        # .item() in train_step waits for the device
        trainer.step(images, labels)
    seconds = time.perf_counter() - started
    num_images = (len(batches) - 2) * batch_size
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer.count_outputs()
    trainer.step(*batches[0])
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return [batch_size, num_images, seconds, num_images / seconds], [batch_size, *trainer.account(), peak]


def write_table(name, columns, rows):
    """One table of OUTPUT_DIR."""
    with open(os.path.join(os.environ["OUTPUT_DIR"], name), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)


def main():
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transforms.ToTensor())
    os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)

    speeds, accounts = zip(*[measure(train_set, batch_size, device) for batch_size in MEASURED])
    write_table("throughput.csv", ["batch_size", "images", "seconds", "images_per_s"], speeds)
    write_table("memory.csv", ["batch_size", "weights", "gradients", "optimizer", "activations", "peak"], accounts)

    trainer = Trainer(device)
    for epoch in range(EPOCHS):
        for images, labels in DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True):
            trainer.step(images, labels)
    torch.save(trainer.model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))


if __name__ == "__main__":
    main()
