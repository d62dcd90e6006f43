"""
The gradient of one batch from unequal shares, averaged by DistributedDataParallel.

DDP takes the plain mean, so each rank's loss is multiplied by m_k / n times the number of ranks.

    $ OUTPUT_DIR=out torchrun --nproc_per_node=4 train.py
"""
import csv
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

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
    groups = {size: dist.new_group(list(range(size))) for size in SHARES if size <= num_ranks}
    inputs, targets = make_batch()
    gradients, shares = {}, []

    for world_size, group in groups.items():
        if rank < world_size:
            own_inputs = inputs.split(SHARES[world_size])[rank]
            own_targets = targets.split(SHARES[world_size])[rank]
            model = DistributedDataParallel(build_model(), process_group=group)
            loss = F.mse_loss(model(own_inputs), own_targets)
            # DDP divides the sum of gradients by the world size, so that is put in beforehand.
            (loss * len(own_inputs) / len(inputs) * world_size).backward()
            for name, parameter in model.module.named_parameters():
                gradients[f"{world_size}/{name}"] = parameter.grad
            told = [None] * world_size
            dist.all_gather_object(told, (world_size, rank, len(own_inputs), loss.item()), group=group)
            shares += told

    if rank == 0:
        save(gradients, shares)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
