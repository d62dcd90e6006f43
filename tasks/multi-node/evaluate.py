"""Trusted scoring of `multi-node`: the network that the weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission; two functions are the whole contract.
"""

import torch
from torch import nn

from grader.evaluate.classifier import accuracy_and_loss
from grader.evaluate.small_convnet import SmallConvNet


def build_model() -> nn.Module:
    """The skeleton's network with fresh weights, on the CPU."""
    return SmallConvNet()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)
