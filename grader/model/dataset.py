"""A data set that was prepared on this machine: where its two sides lie and how many samples each has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """Splits of images in torchvision's FashionMNIST layout, no image on two sides; or what a task made.

    Attributes:
        name: as tasks name it; version: hash of its content, short.
        visible_dir: becomes $DATA_DIR; of images `train-*` is the training split, `t10k-*` the validation split; of
            what a task made `validation` is the part to validate on.
        hidden_dir: for the scorer only; of images `t10k-*` is the hidden split; of what a task made `hidden` is.
        num_train, num_validation, num_hidden: samples, 0 where nobody says.
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

    @property
    def sizes(self) -> str:
        """How many samples there are, in words."""
        if not self.num_train:
            return "prepared"
        return (
            f"{self.num_train} training, {self.num_validation} validation, {self.num_hidden} hidden samples"
        )
