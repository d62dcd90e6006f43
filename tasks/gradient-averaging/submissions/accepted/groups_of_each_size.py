"""
The gradient of one batch from unequal shares, with a process group for each world size.

Each rank sums the losses of its samples; the sum over ranks is divided by the number of all once.

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
    # Every rank calls new_group for every group, its own or not.
    groups = {size: dist.new_group(list(range(size))) for size in SHARES if size <= num_ranks}
    model = build_model()
    inputs, targets = make_batch()
    gradients, shares = {}, []

    for world_size, group in groups.items():
        if rank >= world_size:
            continue
        own = inputs.split(SHARES[world_size])[rank], targets.split(SHARES[world_size])[rank]
        model.zero_grad()
        # The sum over samples needs no weights: one division by the number of all does it.
        loss_sum = F.mse_loss(model(own[0]), own[1], reduction="sum")
        loss_sum.backward()
        num_values = torch.tensor(float(own[1].numel()), dtype=torch.float64)
        dist.all_reduce(num_values, group=group)
        for name, parameter in model.named_parameters():
            dist.all_reduce(parameter.grad, group=group)
            gradients[f"{world_size}/{name}"] = parameter.grad / num_values
        row = (world_size, rank, len(own[0]), loss_sum.item() / own[1].numel())
        told = [None] * world_size
        dist.all_gather_object(told, row, group=group)
        shares += told

    if rank == 0:
        save(gradients, shares)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
