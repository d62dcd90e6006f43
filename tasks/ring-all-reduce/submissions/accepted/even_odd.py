"""
Averages gradients in a ring of blocking messages.

    $ OUTPUT_DIR=out OMP_NUM_THREADS=1 torchrun --nproc_per_node=4 train.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

STEPS = 4
SAMPLES = 48  # of all ranks together, in each step
LEARNING_RATE = 0.5


def build_model():
    """64 numbers in, 10 numbers out, with the same weights on every rank: 19,210 of them."""
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (number + 2))
            parameter.copy_(waves.reshape(parameter.shape) / 8)
    return model


def make_batch(step):
    """The whole batch of a step: inputs (48, 64) and targets (48, 10)."""
    numbers = torch.arange(SAMPLES * 64, dtype=torch.float64) + step * SAMPLES * 64
    inputs = torch.sin(numbers**2).reshape(SAMPLES, 64)
    return inputs, torch.cos(inputs[:, :10].cumsum(dim=1) * 3)


def exchange(outgoing, incoming):
    """Blocking messages: even ranks send first, odd ranks receive first, so that nobody waits for a rank that waits."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    if rank % 2 == 0:
        dist.send(outgoing, dst=right)
        dist.recv(incoming, src=left)
    else:
        dist.recv(incoming, src=left)
        dist.send(outgoing, dst=right)


def average(buffer):
    """Replace the numbers of every rank by their mean over all ranks, in place."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if world_size == 1:
        return
    chunks = buffer.tensor_split(world_size)
    incoming = torch.empty_like(chunks[0])  # the first one is among the longest
    for step in range(world_size - 1):
        outgoing, mine = chunks[(rank - step) % world_size], chunks[(rank - step - 1) % world_size]
        exchange(outgoing, incoming[: len(mine)])
        mine += incoming[: len(mine)]
    for step in range(world_size - 1):
        exchange(chunks[(rank + 1 - step) % world_size], chunks[(rank - step) % world_size])
    buffer /= world_size


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = build_model()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)

    for step in range(STEPS):
        inputs, targets = make_batch(step)
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs[rank::world_size]), targets[rank::world_size])
        loss.backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in parameters])
        average(gradient)
        for parameter, part in zip(parameters, gradient.split([p.numel() for p in parameters])):
            parameter.grad.copy_(part.view_as(parameter))
        optimizer.step()

    if rank == 0:
        print(f"loss of rank 0's share in the last step: {loss.item():.6f}")
        os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
        torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "weights.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
