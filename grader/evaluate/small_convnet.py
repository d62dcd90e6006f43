"""The network of tasks that are about how it is trained, not about what it is: for their `evaluate.py`.

It is in the scorer's container, as `classifier` is. A task with a network of its own writes it into its `evaluate.py`.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class SmallConvNet(nn.Module):
    """Two convolutions and two linear layers, named as in those tasks' skeletons: 52,266 parameters."""

    def __init__(self) -> None:
        """Fresh weights, on the CPU."""
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(16 * 7 * 7, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map normalised images (N, 1, 28, 28) to logits (N, 10)."""
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        logits: torch.Tensor = self.fc2(F.relu(self.fc1(x.flatten(1))))
        return logits
