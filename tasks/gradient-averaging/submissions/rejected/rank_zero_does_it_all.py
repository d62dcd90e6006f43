# expect: DIST012
"""
A group is formed, and then rank 0 computes every share by itself: nothing is ever sent.

    $ OUTPUT_DIR=out torchrun --nproc_per_node=4 train.py
"""
import csv
import os

import torch
import torch.distributed as dist
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
    dist.init_process_group("gloo")
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    model = build_model()
    inputs, targets = make_batch()
    gradients, shares = {}, []

    if rank == 0:
        for world_size in range(1, min(num_ranks, 4) + 1):
            first = 0
            for share, num_own in enumerate(SHARES[world_size]):
                model.zero_grad()
                loss = F.mse_loss(model(inputs[first : first + num_own]), targets[first : first + num_own])
                loss.backward()
                shares.append((world_size, share, num_own, loss.item()))
                first += num_own
                for name, parameter in model.named_parameters():
                    key = f"{world_size}/{name}"
                    gradients[key] = gradients.get(key, 0) + parameter.grad * (num_own / len(inputs))
        save(gradients, shares)
    dist.barrier()  # the others wait until rank 0 is done
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
