"""Labels of one attempt alone: classes change their numbers, so that what knows other numbers is worth nothing here.

Labels are names; a network learns one numbering as well as another. Weights, labels or whole data sets that a script
brings along were made with the numbers that the classes have elsewhere, and score at chance level. The order of the
images stays: whoever knows the images recognises them in any order, and to write the images of a large set anew would
cost an attempt more than all else around it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from grader.errors import InfraError

_LABELS = "-labels-idx1-ubyte"
_TRAINING = f"train{_LABELS}"
_HEADER = 8


def draw_class_labels(data_dir: Path) -> tuple[int, ...]:
    """A new label for every class of the training split, by its prepared one, from the machine's own randomness.

    Raises:
        InfraError: the prepared labels cannot be read.
    """
    labels = [
        label
        for name, content in _read(data_dir).items()
        if name.endswith(_TRAINING)
        for label in content[_HEADER:]
    ]
    drawn = list(range(max(labels, default=-1) + 1))
    secrets.SystemRandom().shuffle(drawn)
    return tuple(drawn)


def label_files(data_dir: Path, class_labels: Sequence[int]) -> dict[str, bytes]:
    """Contents of all label files below a prepared folder by path, with the labels of one attempt.

    Args:
        class_labels: label of each class by its prepared one; empty: as prepared.

    Raises:
        InfraError: the prepared labels cannot be read.
    """
    table = bytes((*class_labels, *range(len(class_labels), 256)))
    return {
        name: content[:_HEADER] + content[_HEADER:].translate(table)
        for name, content in _read(data_dir).items()
    }


def _read(data_dir: Path) -> dict[str, bytes]:
    try:
        return {
            path.relative_to(data_dir).as_posix(): path.read_bytes()
            for path in sorted(data_dir.rglob(f"*{_LABELS}"))
        }
    except OSError as error:
        raise InfraError(f"The labels below {data_dir} cannot be read: {error}") from error
