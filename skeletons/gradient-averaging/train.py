"""
Compute the gradient of a toy network over one batch, with one process, on the CPU.

    $ OUTPUT_DIR=out python train.py

The batch has 60 samples, and the loss is the mean over all of them. OUTPUT_DIR receives
    gradients.pt    the gradient of each parameter, float64, named "<world size>/<parameter>"
    shares.csv      who computed on how many samples, and the mean loss over them

Your assignment is to have the same gradient computed by several ranks, each from its own share of the batch:

    $ OUTPUT_DIR=out torchrun --nproc_per_node=4 train.py

SHARES says how the batch is dealt: at world size 3 the first rank takes samples 0 to 34, the next one 35 to 54,
the last one 55 to 59. Started with four ranks, do it for the first one, the first two, the first three, and all
four of them. Leave SHARES, the batch and the weights as they are.
"""
import csv
import os

import torch
from torch import nn
from torch.nn import functional as F

SHARES = {1: [60], 2: [42, 18], 3: [35, 20, 5], 4: [31, 17, 11, 1]}


def build_model():
    """10 numbers in, 5 numbers out, with the same weights in every process."""
    model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (number + 2))
            parameter.copy_(waves.reshape(parameter.shape) / 2)
    return model


def make_batch():
    """The whole batch: inputs (60, 10) and targets (60, 5)."""
    inputs = torch.sin(torch.arange(600, dtype=torch.float64) ** 2).reshape(60, 10)
    return inputs, torch.cos(inputs[:, :5].cumsum(dim=1) * 3)


def save(gradients, shares):
    """Write what was found: gradients by name, and rows of (world size, rank, samples, loss)."""
    out_dir = os.environ["OUTPUT_DIR"]
    os.makedirs(out_dir, exist_ok=True)
    torch.save(gradients, os.path.join(out_dir, "gradients.pt"))
    with open(os.path.join(out_dir, "shares.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["world_size", "rank", "samples", "loss"])
        writer.writerows(shares)


def main():
    model = build_model()
    inputs, targets = make_batch()

    loss = F.mse_loss(model(inputs), targets)
    loss.backward()
    gradients = {f"1/{name}": parameter.grad for name, parameter in model.named_parameters()}
    save(gradients, [(1, 0, len(inputs), loss.item())])
    print(f"loss of {len(inputs)} samples: {loss.item():.6f}")


if __name__ == "__main__":
    main()
