"""Labels of one submission alone: classes change their numbers, so that what knows other numbers is worth nothing.

Labels are names; a network learns one numbering as well as another. Weights, labels or whole data sets that a script
brings along were made with the numbers that the classes have elsewhere, and score at chance level. The order of the
images stays: whoever knows the images recognises them in any order, and to write the images of a large set anew would
cost an attempt more than all else around it.

The numbers follow from the submission's text and a key that only this site has: the same text meets the same numbers
again, and comes to the same accuracy; another text, in which weights would be, meets others.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from grader.errors import InfraError
from grader.files import write_once
from grader.model.submission import Submission

if TYPE_CHECKING:
    from grader.settings.schema import Settings

_LABELS = "-labels-idx1-ubyte"
_TRAINING = f"train{_LABELS}"
_HEADER = 8


def labels_of(submission: Submission, data_dir: Path, site: Settings) -> tuple[int, ...]:
    """A label for every class of the training split by its prepared one, as this submission meets it on this site.

    Raises:
        InfraError: the prepared labels cannot be read, or the site's key cannot be kept.
    """
    key = site.class_labels_key.encode() or site_key(site.state_dir)
    return draw_class_labels(data_dir, submission.digest, key)


def draw_class_labels(data_dir: Path, digest: str, key: bytes) -> tuple[int, ...]:
    """A label for every class of the training split, by its prepared one.

    Args:
        data_dir: the prepared folder; its name, a version, takes part.
        digest: of the submission; key: of the site.

    Raises:
        InfraError: the prepared labels cannot be read.
    """
    training = [content[_HEADER:] for name, content in _read(data_dir).items() if name.endswith(_TRAINING)]
    drawn = list(range(max((max(labels, default=-1) for labels in training), default=-1) + 1))
    seed = hashlib.blake2b(f"{data_dir.name} {digest}".encode(), key=hashlib.sha256(key).digest())
    Random(seed.digest()).shuffle(drawn)
    return tuple(drawn)


def site_key(state_dir: Path) -> bytes:
    """The key of this site, made when it is first asked for.

    Raises:
        InfraError: the state folder cannot be written.
    """
    path = state_dir / "class_labels.key"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_once(path, secrets.token_bytes(32), mode=0o600)
        return path.read_bytes()
    except OSError as error:
        raise InfraError(f"The key for class labels could not be kept in {path}: {error}") from error


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
