"""
Averages gradients in a ring of rows of equal length, each pair of messages begun together.

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
    """One message to the next rank and one from the rank before, together."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    messages = [
        dist.P2POp(dist.isend, outgoing, (rank + 1) % world_size),
        dist.P2POp(dist.irecv, incoming, (rank - 1) % world_size),
    ]
    for request in dist.batch_isend_irecv(messages):
        request.wait()


def average(buffer):
    """Replace the numbers of every rank by their mean over all ranks, in place."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if world_size == 1:
        return
    size = -(-len(buffer) // world_size)
    padded = torch.zeros(size * world_size, dtype=buffer.dtype)  # equal rows, the last one filled up with zeros
    padded[: len(buffer)] = buffer / world_size
    rows = padded.view(world_size, size)
    incoming = torch.empty(size, dtype=buffer.dtype)
    for step in range(world_size - 1):  # reduce-scatter
        exchange(rows[(rank - step) % world_size], incoming)
        rows[(rank - step - 1) % world_size] += incoming
    for step in range(world_size - 1):  # all-gather
        exchange(rows[(rank - step + 1) % world_size], rows[(rank - step) % world_size])
    buffer.copy_(padded[: len(buffer)])


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
