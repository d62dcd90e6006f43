"""
Averages gradients in a ring: a chunk goes to the right while another comes from the left.

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


def average(buffer):
    """Replace the numbers of every rank by their mean over all ranks, in place."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    chunks = buffer.tensor_split(world_size)  # views; sizes differ by one at most

    def pass_on(number, incoming):
        """Send chunk `number` to the right while `incoming` is filled from the left."""
        sending = dist.isend(chunks[number % world_size], right)
        receiving = dist.irecv(incoming, left)
        sending.wait()
        receiving.wait()

    # Once around: each chunk collects the numbers of all ranks and ends, whole, on the rank before its first one.
    for step in range(world_size - 1):
        incoming = torch.empty_like(chunks[(rank - step - 1) % world_size])
        pass_on(rank - step, incoming)
        chunks[(rank - step - 1) % world_size].add_(incoming)
    chunks[(rank + 1) % world_size].div_(world_size)
    # Once more: the whole chunks travel on to everybody.
    for step in range(world_size - 1):
        pass_on(rank + 1 - step, chunks[(rank - step) % world_size])


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
