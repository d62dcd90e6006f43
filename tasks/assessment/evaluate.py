"""Trusted scoring of `assessment`: the network that the weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission; two functions are the whole contract.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss

_DEPTH, _WIDTH, _BASE_CHANNELS, _NUM_CLASSES = 10, 2, 8, 10


class Block(nn.Module):
    """Two 3x3 convolutions around which the input is carried past, named as in the skeleton."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.skip = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (N, in_channels, H, W) to (N, out_channels, H / stride, W / stride)."""
        hidden = self.conv1(F.relu(self.norm1(x)))
        hidden = self.conv2(F.relu(self.norm2(hidden)))
        total: torch.Tensor = self.skip(x) + hidden
        return total


class WideResNet(nn.Module):
    """The skeleton's network at its own depth and width: 76,450 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, _BASE_CHANNELS, 3, padding=1, bias=False)
        blocks, channels = [], _BASE_CHANNELS
        for group in range(3):
            for number in range((_DEPTH - 4) // 6):
                out_channels = _BASE_CHANNELS * _WIDTH * 2**group
                blocks.append(Block(channels, out_channels, stride=2 if group > 0 and number == 0 else 1))
                channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, _NUM_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map normalised images (N, 1, 28, 28) to logits (N, classes)."""
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        logits: torch.Tensor = self.head(x.mean(dim=(2, 3)))
        return logits


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return WideResNet()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,)), without its random crop
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)
