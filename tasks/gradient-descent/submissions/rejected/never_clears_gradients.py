# expect: EVAL010 GRAD006
"""
The gradients of all batches so far pile up, as nobody clears them.

    $ OUTPUT_DIR=out python train.py
"""
import csv
import os
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

NUM_POINTS = 512
LEARNING_RATES = {1: 0.002, 8: 0.02, 64: 0.1, 512: 0.3}
STOP = 0.001  # change of the loss in an epoch, as a share of it
MAX_EPOCHS = 8


def make_points(device):
    """The 512 points as two tensors, the same in every run."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(NUM_POINTS, generator=generator) * 2 - 1
    y = 10 * x + 2 + torch.randn(NUM_POINTS, generator=generator)
    return x.to(device), y.to(device)


def loss_of(w, b, x, y):
    """Mean squared error of the line y = w x + b."""
    return ((w * x + b - y) ** 2).mean()


def train(x, y, batch_size, learning_rate):
    """A linear layer, SGD and a DataLoader. Returns the table's row and the losses by epoch."""
    line = nn.Linear(1, 1).to(x.device)
    nn.init.zeros_(line.weight)
    nn.init.zeros_(line.bias)
    optimizer = torch.optim.SGD(line.parameters(), lr=learning_rate)
    inputs, targets = x.unsqueeze(1), y.unsqueeze(1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=batch_size, shuffle=True)

    def whole_loss():
        with torch.no_grad():
            return F.mse_loss(line(inputs), targets).item()

    losses, updates, samples = [whole_loss()], 0, 0
    started = time.perf_counter()
    for _ in range(MAX_EPOCHS):
        for some_inputs, some_targets in loader:
            F.mse_loss(line(some_inputs), some_targets).backward()
            optimizer.step()
            updates += 1
            samples += len(some_inputs)
        losses.append(whole_loss())
        if abs(losses[-1] - losses[-2]) < STOP * losses[-2]:
            break
    seconds = time.perf_counter() - started
    w, b = line.weight.item(), line.bias.item()
    return [batch_size, learning_rate, updates, samples, seconds, w, b, losses[-1]], losses


def save(rows, curves):
    """Write both tables: rows of the first, and losses by epoch for each batch size."""
    out_dir = os.environ["OUTPUT_DIR"]
    os.makedirs(out_dir, exist_ok=True)
    with open(os.path.join(out_dir, "table.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["batch_size", "learning_rate", "updates", "samples", "seconds", "w", "b", "loss"])
        table.writerows(rows)
    with open(os.path.join(out_dir, "losses.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["batch_size", "epoch", "loss"])
        for batch_size, losses in curves.items():
            table.writerows([batch_size, epoch, loss] for epoch, loss in enumerate(losses))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = make_points(device)
    rows, curves = [], {}
    for batch_size, learning_rate in LEARNING_RATES.items():
        row, losses = train(x, y, batch_size, learning_rate)
        print(f"{batch_size:4d}: {row[2]} updates, {row[4]:.3f} s: y = {row[5]:.3f} x + {row[6]:.3f}, loss {row[7]:.4f}")
        rows.append(row)
        curves[batch_size] = losses
    save(rows, curves)


if __name__ == "__main__":
    main()
