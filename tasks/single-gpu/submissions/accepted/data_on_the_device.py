"""
A small classifier whose whole training set lies on the device, in batches drawn there.

    $ DATA_DIR=data OUTPUT_DIR=out python train.py
"""
import csv
import os
import time

import torch
from torch import nn
from torch.nn import functional as F
from torchvision import datasets

EPOCHS = 5
BATCH_SIZE = 64
LR = 0.002
MEASURED = (2, 4, 64)  # batch sizes
STEPS = 40  # timed for each of them


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


def write_table(name, columns, rows):
    """One table of OUTPUT_DIR."""
    with open(os.path.join(os.environ["OUTPUT_DIR"], name), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)


def load_everything(device):
    """All training images and labels, on the device before training begins: small sets fit."""
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True)
    images = train_set.data.unsqueeze(1).float().div(255).to(device)
    return images, train_set.targets.to(device)


def train(images, labels, batch_size, num_steps):
    """A new network after some steps; returns it with its optimizer and the seconds that the steps took."""
    model = build_model().to(images.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    started = time.perf_counter()
    for _ in range(num_steps):
        batch = torch.randint(len(images), (batch_size,), device=images.device)
        train_step(model, optimizer, images[batch], labels[batch])
    return model, optimizer, time.perf_counter() - started


def kept_for_backward(model, images):
    """Bytes of what autograd keeps of one forward pass, the weights not counted."""
    weights = {p.data_ptr() for p in model.parameters()}
    kept = {}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), lambda t: t):
        model(images).logsumexp(dim=1).sum()
    return sum(t.nbytes for place, t in kept.items() if place not in weights)


def main():
    on_gpu = torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator() if on_gpu else torch.device("cpu")
    images, labels = load_everything(device)
    os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
    speeds, accounts = [], []
    for batch_size in MEASURED:
        train(images, labels, batch_size, 3)
        model, optimizer, seconds = train(images, labels, batch_size, STEPS)
        speeds.append([batch_size, STEPS * batch_size, seconds, STEPS * batch_size / seconds])
        weights = sum(p.nbytes for p in model.parameters())
        gradients = sum(p.grad.nbytes for p in model.parameters())
        state = sum(t.nbytes for s in optimizer.state.values() for t in s.values())
        activations = kept_for_backward(model, images[:batch_size])
        peak = torch.cuda.max_memory_allocated() if on_gpu else 0
        accounts.append([batch_size, weights, gradients, state, activations, peak])
    write_table("throughput.csv", ["batch_size", "images", "seconds", "images_per_s"], speeds)
    write_table("memory.csv", ["batch_size", "weights", "gradients", "optimizer", "activations", "peak"], accounts)

    model, _, seconds = train(images, labels, BATCH_SIZE, EPOCHS * len(images) // BATCH_SIZE)
    print(f"trained in {seconds:.1f} s on {device}")
    torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))


if __name__ == "__main__":
    main()
