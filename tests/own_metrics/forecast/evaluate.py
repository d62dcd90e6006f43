"""How well temperatures are foretold."""

from pathlib import Path

import numpy as np
import torch
from torch import nn


def build_model() -> nn.Module:
    """Two inputs, one forecast."""
    return nn.Linear(2, 1)


def evaluate(model: nn.Module, folder: Path) -> dict[str, float]:
    """Mean squared error, and the share of days that are foretold to half a kelvin."""
    days = torch.from_numpy(np.load(folder / "days.npy"))
    errors = model(days[:, :2]).squeeze(1) - days[:, 2]
    return {
        "mse": errors.square().mean().item(),
        "close": (errors.abs() < 0.5).double().mean().item(),
        "bias": errors.mean().item(),
    }
