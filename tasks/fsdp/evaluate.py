"""Trusted scoring of `fsdp`: the network that the whole weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission; two functions are the whole contract.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss

_NUM_CLASSES = 10
# width and depth, as in the skeleton
_SIZES = {"small": (192, 4), "large": (1024, 14)}


class Block(nn.Module):
    """Widen, bend, narrow, and add what came in; named as in the skeleton."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (N, width) to (N, width)."""
        out: torch.Tensor = x + self.down(F.gelu(self.up(self.norm(x))))
        return out


class ResidualMLP(nn.Module):
    """The skeleton's network: 1,338,634 parameters, or 118,357,002 of the large one."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Linear(28 * 28, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, _NUM_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map normalised images (N, 1, 28, 28) to logits (N, classes)."""
        x = self.embed(x.flatten(1))
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits


def build_model(size: str = "small") -> nn.Module:
    """The task's network of a size that a profile names, with fresh weights, on the CPU."""
    return ResidualMLP(*_SIZES[size])


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)
