"""Trusted scoring of `tiny-lm`: the transformer that the weights must fit, and how well it foretells text.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission.
"""

import math
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
_CONTEXT, _WIDTH, _HEADS, _LAYERS = 64, 64, 4, 2


class TinyTransformer(nn.Module):
    """Two layers of causal self-attention over 64 characters, named as in the skeleton: 116,576 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), _WIDTH)
        self.positions = nn.Embedding(_CONTEXT, _WIDTH)
        layer = nn.TransformerEncoderLayer(
            _WIDTH, _HEADS, 4 * _WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(_WIDTH)
        self.head = nn.Linear(_WIDTH, len(CHARACTERS))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Map numbers of characters (N, T ≤ 64) to logits (N, T, 96) of the character after each."""
        length = numbers.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=numbers.device)
        x = self.characters(numbers) + self.positions(torch.arange(length, device=numbers.device))
        logits: torch.Tensor = self.head(self.norm(self.layers(x, mask=mask, is_causal=True)))
        return logits


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return TinyTransformer()


def evaluate(model: nn.Module, folder: Path) -> dict[str, float]:
    """Bits per character of `text.txt`, read in windows of 64 that begin anew: log₂ of the odds against what came."""
    text = (folder / "text.txt").read_text(encoding="ascii")
    numbers = torch.tensor([CHARACTERS.index(character) for character in text])
    num_windows = (len(numbers) - 1) // _CONTEXT
    inputs = numbers[: num_windows * _CONTEXT].view(-1, _CONTEXT)
    targets = numbers[1 : num_windows * _CONTEXT + 1].view(-1, _CONTEXT)
    total = 0.0
    with torch.no_grad():
        for some, wanted in zip(inputs.split(64), targets.split(64), strict=True):
            total += F.cross_entropy(model(some).flatten(0, 1), wanted.flatten(), reduction="sum").item()
    return {"bits_per_character": total / targets.numel() / math.log(2)}
