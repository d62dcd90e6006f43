# expect: EVAL010
# points: 85
"""
Every rank computes on the whole batch: the mean is right at every world size, and nobody has less to do.

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


def own_share(world_size, rank):
    """Where this rank's samples begin and end; nothing for ranks that are not among the first `world_size`."""
    sizes = SHARES[world_size] if rank < world_size else []
    return 0, sum(sizes)


def main():
    dist.init_process_group("gloo")
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    model = build_model()
    inputs, targets = make_batch()
    gradients, shares = {}, []

    for world_size in range(1, min(num_ranks, 4) + 1):
        first, last = own_share(world_size, rank)
        num_own, row = last - first, None
        model.zero_grad()
        if num_own:
            loss = F.mse_loss(model(inputs[first:last]), targets[first:last])
            loss.backward()
            row = (world_size, rank, num_own, loss.item())

        for name, parameter in model.named_parameters():
            part = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad / world_size
            dist.all_reduce(part)
            gradients[f"{world_size}/{name}"] = part.detach()

        told = [None] * num_ranks
        dist.all_gather_object(told, row)
        shares += [row for row in told if row is not None]

    if rank == 0:
        save(gradients, shares)
        print(f"world sizes 1 to {min(num_ranks, 4)}, {num_ranks} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
