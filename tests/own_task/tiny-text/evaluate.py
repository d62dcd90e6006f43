"""How well a network foretells the words."""

from pathlib import Path

import numpy as np
import torch
from tokens import WORDS
from torch import nn
from torch.nn.functional import cross_entropy


def build_model() -> nn.Module:
    """One row of numbers for each word."""
    return nn.Sequential(nn.Embedding(len(WORDS), 16), nn.Linear(16, len(WORDS)))


def evaluate(model: nn.Module, folder: Path) -> dict[str, float]:
    """Perplexity of the words of `tokens.bin`, each foretold by the one before."""
    tokens = torch.from_numpy(np.fromfile(folder / "tokens.bin", dtype=np.uint16).astype(np.int64))
    return {"perplexity": cross_entropy(model(tokens[:-1]), tokens[1:]).exp().item()}
