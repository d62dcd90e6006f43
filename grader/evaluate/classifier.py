"""What a classifier is worth on samples it has never seen: for the `evaluate.py` of tasks, which run in the scorer.

With `small_convnet` all of ours that a task's file may import: both are in the scorer's container, too. Knows neither
networks nor where images come from.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

_BATCH_SIZE = 256


@torch.no_grad()
def accuracy_and_loss(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Score every sample once.

    Args:
        model: the network with the weights to be scored; it is left in evaluation mode.
        inputs: what it is given, one sample per row, N > 0 of them.
        labels: int64 classes, shape (N,).

    Returns:
        `accuracy`, the share of samples whose largest logit is the label's, and `loss`, the mean cross entropy. `loss`
        is not finite where the weights are not.
    """
    model.eval()
    loss_sum, num_correct = 0.0, 0
    for batch, targets in zip(inputs.split(_BATCH_SIZE), labels.split(_BATCH_SIZE), strict=True):
        logits = model(batch)
        loss_sum += F.cross_entropy(logits, targets, reduction="sum").item()
        num_correct += int((logits.argmax(dim=1) == targets).sum().item())
    return {"accuracy": num_correct / len(labels), "loss": loss_sum / len(labels)}
