# expect: EVAL010
"""
The skeleton as it is: all points in every update, and twenty updates whatever they achieve.

    $ OUTPUT_DIR=out python train.py
"""
import csv
import os
import time

import torch

NUM_POINTS = 512
LEARNING_RATES = {1: 0.002, 8: 0.02, 64: 0.1, 512: 0.3}  # by batch size; try others
EPOCHS = 20


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
    """Gradient descent: every update sees all points. Returns the table's row and the losses by epoch."""
    w = torch.zeros((), device=x.device, requires_grad=True)
    b = torch.zeros((), device=x.device, requires_grad=True)
    losses = [loss_of(w, b, x, y).item()]
    updates = 0
    started = time.perf_counter()
    for _ in range(EPOCHS):
        loss = loss_of(w, b, x, y)
        by_w, by_b = torch.autograd.grad(loss, (w, b))
        with torch.no_grad():
            w -= learning_rate * by_w
            b -= learning_rate * by_b
        updates += 1
        losses.append(loss_of(w, b, x, y).item())
    seconds = time.perf_counter() - started
    row = [batch_size, learning_rate, updates, updates * batch_size, seconds, w.item(), b.item(), losses[-1]]
    return row, losses


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
    row, losses = train(x, y, NUM_POINTS, LEARNING_RATES[NUM_POINTS])
    print(f"{row[2]} updates, {row[4]:.3f} s: y = {row[5]:.3f} x + {row[6]:.3f}, loss {row[7]:.4f}")
    save([row], {NUM_POINTS: losses})


if __name__ == "__main__":
    main()
