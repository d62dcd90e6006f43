"""A data set that was prepared on this machine: where its two sides lie and how many samples each has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """Splits in torchvision's FashionMNIST layout; no image is on two sides.

    Attributes:
        name: as tasks name it; version: hash of its content, short.
        visible_dir: becomes $DATA_DIR; `train-*` is the training split, `t10k-*` the validation split.
        hidden_dir: for the scorer only; `t10k-*` is the hidden split.
        num_train, num_validation, num_hidden: samples.
        class_labels: label that each class has in one attempt, by its prepared one; empty: as prepared.
    """

    name: str
    version: str
    visible_dir: Path
    hidden_dir: Path
    num_train: int
    num_validation: int
    num_hidden: int
    class_labels: tuple[int, ...] = ()
