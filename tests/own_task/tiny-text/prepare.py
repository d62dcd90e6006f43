"""Cuts the corpus in three and writes numbers."""

from pathlib import Path

import tokens


def prepare(out: Path, source: Path, seed: str) -> None:
    """`train.bin` and `validation/tokens.bin` for scripts, `tokens.bin` for the scorer."""
    numbers = tokens.encode((source / "corpus.txt").read_text())
    train, validation, hidden = numbers[:4000], numbers[4000:4500], numbers[4500:]
    (out / "visible" / "validation").mkdir()
    train.tofile(out / "visible" / "train.bin")
    validation.tofile(out / "visible" / "validation" / "tokens.bin")
    hidden.tofile(out / "hidden" / "tokens.bin")
