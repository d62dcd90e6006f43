"""How many words a network foretells."""

from pathlib import Path

import numpy as np
import torch
from tokens import WORDS
from torch import nn


def build_model() -> nn.Module:
    """One row of numbers for each word."""
    return nn.Sequential(nn.Embedding(len(WORDS), 16), nn.Linear(16, len(WORDS)))


def evaluate(model: nn.Module, folder: Path) -> dict[str, float]:
    """Share of the words of `tokens.bin` that the word before foretells."""
    tokens = torch.from_numpy(np.fromfile(folder / "tokens.bin", dtype=np.uint16).astype(np.int64))
    return {"accuracy": (model(tokens[:-1]).argmax(1) == tokens[1:]).double().mean().item()}
