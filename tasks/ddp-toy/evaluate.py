"""The network of `ddp-toy`: what weights have to fit, if a script leaves any.

Runs only in the scorer. The task's data are random numbers, so there is no accuracy to measure, and no function that
would; what a run is judged on are its ranks, their gradients and their end.
"""

import torch
from torch import nn


class ToyModel(nn.Module):
    """Two linear layers with a ReLU in between, named as in the skeleton."""

    def __init__(self) -> None:
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (N, 10) to (N, 5)."""
        out: torch.Tensor = self.net2(self.relu(self.net1(x)))
        return out


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return ToyModel()
