"""Trusted scoring of `multi-node`: the network that the weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission; two functions are the whole contract.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss


class Net(nn.Module):
    """The skeleton's network, named as there: 53,290 parameters."""

    def __init__(self) -> None:
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


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return Net()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)
