"""Trusted scoring of `large-batch`: the network that the weights must fit, and what they are worth.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission, and it knows nothing of the service around it: two functions are the whole contract.
"""

import torch
from torch import nn
from torch.nn import functional as F

_SCORING_BATCH_SIZE = 256


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


@torch.no_grad()
def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Score every sample once.

    Args:
        model: what `build_model` returned, with the weights to be scored; it is left in evaluation mode.
        images: uint8 pixels, shape (N, 28, 28), N > 0.
        labels: int64 classes, shape (N,).

    Returns:
        `accuracy`, the share of samples whose largest logit is the label's, and `loss`, the mean cross
        entropy. `loss` is not finite where the weights are not.
    """
    model.eval()
    loss_sum, num_correct = 0.0, 0
    for pixels, targets in zip(
        images.split(_SCORING_BATCH_SIZE), labels.split(_SCORING_BATCH_SIZE), strict=True
    ):
        # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
        logits = model((pixels.unsqueeze(1).float() / 255 - 0.5) / 0.5)
        loss_sum += F.cross_entropy(logits, targets, reduction="sum").item()
        num_correct += int((logits.argmax(dim=1) == targets).sum().item())
    return {"accuracy": num_correct / len(labels), "loss": loss_sum / len(labels)}
