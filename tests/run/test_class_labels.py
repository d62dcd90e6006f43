"""Labels of one attempt: the same classes under other numbers, the same in every file, another numbering every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.idx import images_bytes, labels_bytes, read_split
from grader.run.class_labels import draw_class_labels, label_files, site_key

RAW = Path("FashionMNIST") / "raw"
PREPARED = {"train": [0, 3, 1, 2, 3, 0], "t10k": [2, 1, 0, 3]}
KEY = b"of this site"


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    (tmp_path / RAW).mkdir(parents=True)
    for split, labels in PREPARED.items():
        images = np.zeros((len(labels), 28, 28), np.uint8)
        (tmp_path / RAW / f"{split}-images-idx3-ubyte").write_bytes(images_bytes(images))
        (tmp_path / RAW / f"{split}-labels-idx1-ubyte").write_bytes(labels_bytes(np.array(labels)))
    return tmp_path


def read_back(prepared: Path, files: dict[str, bytes], split: str) -> list[int]:
    for name, content in files.items():
        (prepared / name).write_bytes(content)
    return [int(label) for label in read_split(prepared / RAW, split)[1]]


def test_every_class_has_one_label_and_every_label_one_class(prepared: Path) -> None:
    assert sorted(draw_class_labels(prepared, "text", KEY)) == [0, 1, 2, 3]


def test_a_text_meets_its_own_numbering_again_and_other_texts_others(prepared: Path) -> None:
    assert draw_class_labels(prepared, "text", KEY) == draw_class_labels(prepared, "text", KEY)
    assert len({draw_class_labels(prepared, str(n), KEY) for n in range(200)}) > 12
    assert len({draw_class_labels(prepared, "text", bytes([n])) for n in range(200)}) > 12


def test_a_site_keeps_its_key_to_itself(tmp_path: Path) -> None:
    key = site_key(tmp_path / "state")
    assert site_key(tmp_path / "state") == key != site_key(tmp_path / "elsewhere")
    assert (tmp_path / "state" / "class_labels.key").stat().st_mode & 0o777 == 0o600


def test_all_splits_are_renumbered_alike_and_images_are_not_among_the_files(prepared: Path) -> None:
    files = label_files(prepared, (2, 0, 3, 1))
    assert sorted(files) == [f"{RAW}/t10k-labels-idx1-ubyte", f"{RAW}/train-labels-idx1-ubyte"]
    assert read_back(prepared, files, "train") == [2, 1, 0, 3, 1, 2]
    assert read_back(prepared, files, "t10k") == [3, 0, 2, 1]


def test_without_a_numbering_labels_are_as_prepared(prepared: Path) -> None:
    files = label_files(prepared, ())
    assert [read_back(prepared, files, split) for split in PREPARED] == [*PREPARED.values()]
