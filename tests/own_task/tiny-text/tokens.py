"""Words as numbers, by the table that lies beside this module."""

import json
from pathlib import Path

import numpy as np

WORDS = json.loads((Path(__file__).parent / "tokenizer.json").read_text())["words"]


def encode(text: str) -> np.ndarray:
    """Numbers of the words of a text, uint16."""
    return np.array([WORDS.index(word) for word in text.split()], dtype=np.uint16)
