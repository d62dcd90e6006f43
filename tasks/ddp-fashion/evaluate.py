"""Trusted scoring of `ddp-fashion`: the network that the weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission; two functions are the whole contract.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them, named as in the skeleton."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (N, in_channels, H, W) to (N, out_channels, H / stride, W / stride)."""
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        total: torch.Tensor = out + self.shortcut(x)
        return total


class WideResNet(nn.Module):
    """A stem, three residual blocks, pooling and one linear layer: 76,450 parameters at width 2."""

    def __init__(self, width: int = 2, num_classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.block1 = Block(8, 8 * width, stride=1)
        self.block2 = Block(8 * width, 16 * width, stride=2)
        self.block3 = Block(16 * width, 32 * width, stride=2)
        self.bn = nn.BatchNorm2d(32 * width)
        self.fc = nn.Linear(32 * width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map normalised images (N, 1, 28, 28) to logits (N, num_classes)."""
        x = self.block3(self.block2(self.block1(self.stem(x))))
        x = F.relu(self.bn(x)).mean(dim=(2, 3))
        logits: torch.Tensor = self.fc(x)
        return logits


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return WideResNet()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)
