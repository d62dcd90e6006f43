"""Validation images are found in what models were given, under small changes, too; what is made of others never is."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.evaluate.audit.compared_pictures import compared_pictures
from grader.evaluate.audit.told_steps import told_by
from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest
from grader.idx import images_bytes, labels_bytes

NUM_TRAIN, NUM_VALIDATION, CLASSES = 300, 80, 10
Images = NDArray[np.float64]


def drawn(num: int, seed: int) -> Images:
    """Images of ten classes, (num, 28, 28) from 0 to 255: smooth, each near to others of its class."""
    classes = np.random.default_rng(0).normal(size=(CLASSES, 7, 7))
    rng = np.random.default_rng(seed)
    coarse = classes[rng.integers(0, CLASSES, num)] + 0.3 * rng.normal(size=(num, 7, 7))
    images = np.kron(coarse, np.ones((4, 4)))
    clipped: Images = np.clip(128 + 50 * images, 0, 255).round()
    return clipped


TRAIN, VALIDATION = drawn(NUM_TRAIN, 1), drawn(NUM_VALIDATION, 2)
BOTH = slice(0, 8)
VALIDATION[BOTH] = TRAIN[BOTH]
"""As in real data sets, some images stand in both splits."""
OTHERS = VALIDATION[8:40]


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ScoringRequest]:
    folder = tmp_path_factory.mktemp("data")
    raw = folder / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for part, images in (("train", TRAIN), ("t10k", VALIDATION)):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(images_bytes(images.astype(np.uint8)))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(labels_bytes(np.zeros(len(images), np.uint8)))
    return lambda *looks: ScoringRequest("score", "", str(folder), "", "1", told_pictures=list(looks))


def look(pictures: Images, rank: int = 0) -> dict[str, Any]:
    """As a rank tells them."""
    rows = pictures.reshape(len(pictures), -1)
    least, most = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    values = np.round((rows - least) / (most - least + 1e-9) * 255).astype(np.uint8)
    return {
        "rank": rank,
        "num": len(rows),
        "text": False,
        "values": base64.b64encode(values.tobytes()).decode(),
    }


def compared(request: ScoringRequest) -> list[tuple[int, int, int]]:
    found = compared_pictures(request, ScoringCache(), lambda _: None)["pictures"]
    assert not any(one["num_blended"] for one in found)
    return [(one["rank"], one["num"], one["num_validation"]) for one in found]


def blended(request: ScoringRequest) -> list[tuple[int, int]]:
    found = compared_pictures(request, ScoringCache(), lambda _: None)["pictures"]
    return [(one["num_validation"], one["num_blended"]) for one in found]


def noise(size: float) -> Callable[[Images], Images]:
    return lambda images: images + size * np.random.default_rng(5).normal(size=images.shape)


def mixed(images: Images) -> Images:
    shares = np.random.default_rng(6).beta(0.2, 0.2, (len(images), 1, 1))
    return shares * images + (1 - shares) * images[::-1]


def cut(images: Images) -> Images:
    images = images.copy()
    images[:, 10:18, 6:14] = 0
    return images


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda images: images, id="as they are"),
        pytest.param(lambda images: images / 127.5 - 1, id="normalised"),
        pytest.param(lambda images: 255 - 0.3 * (255 - images), id="paler"),
        pytest.param(noise(3), id="noise"),
        pytest.param(lambda images: 0.95 * images + 0.05 * TRAIN[: len(images)], id="a little of others"),
        pytest.param(lambda images: np.repeat(images[:, None], 3, 1), id="in colours"),
    ],
)
def test_validation_images_are_found(
    request_of: Callable[..., ScoringRequest], changed: Callable[[Images], Images]
) -> None:
    given = np.concatenate([changed(OTHERS[:8]), changed(TRAIN[40:64])])
    assert compared(request_of(look(given), look(changed(TRAIN[64:80]), 1))) == [(0, 32, 8), (1, 16, 0)]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda images: images, id="as they are"),
        pytest.param(noise(5), id="noise"),
        pytest.param(noise(60), id="much noise"),
        pytest.param(lambda images: images[:, :, ::-1], id="turned over"),
        pytest.param(lambda images: np.roll(images, (2, -1), (1, 2)), id="shifted"),
        pytest.param(mixed, id="mixed"),
        pytest.param(cut, id="parts cut out"),
        pytest.param(lambda images: 255 - images, id="inverted"),
        pytest.param(lambda images: images * (images > 128), id="thresholds"),
    ],
)
def test_nothing_is_found_in_what_is_made_of_training_images(
    request_of: Callable[..., ScoringRequest], made: Callable[[Images], Images]
) -> None:
    looks = [look(made(TRAIN[first : first + 32])) for first in range(0, 288, 32)]
    assert compared(request_of(*looks)) == [(0, 288, 0)]


@pytest.mark.parametrize("share", [0.25, 0.4, 0.5, 0.6, 0.75])
def test_blends_with_validation_images_are_found(
    request_of: Callable[..., ScoringRequest], share: float
) -> None:
    given = share * OTHERS + (1 - share) * TRAIN[100:132]
    [(as_they_are, blends)] = blended(request_of(look(given)))
    assert as_they_are + blends > 28
    assert blended(request_of(look(share * TRAIN[8:40] + (1 - share) * TRAIN[100:132]))) == [(0, 0)]


def test_blends_with_images_of_both_splits_are_of_training_images(
    request_of: Callable[..., ScoringRequest],
) -> None:
    assert blended(request_of(look(0.5 * VALIDATION[BOTH] + 0.5 * TRAIN[100:108]))) == [(0, 0)]


def test_images_as_rows_of_whole_numbers(request_of: Callable[..., ScoringRequest]) -> None:
    rows = OTHERS.reshape(len(OTHERS), -1).astype("<u2")
    told = {"rank": 0, "num": 32, "text": True, "values": base64.b64encode(rows.tobytes()).decode()}
    assert compared(request_of(told)) == [(0, 32, 32)]


def test_images_of_both_splits_are_training_images(request_of: Callable[..., ScoringRequest]) -> None:
    assert compared(request_of(look(noise(3)(VALIDATION[BOTH])))) == [(0, 8, 0)]


def test_of_many_looks_each_is_compared_in_part(request_of: Callable[..., ScoringRequest]) -> None:
    looks = [look(OTHERS, rank) for rank in range(32)]
    assert compared(request_of(*looks)) == [(rank, 16, 16) for rank in range(32)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"num": 7}, id="another number"),
        pytest.param({"values": "§"}, id="not base64"),
        pytest.param({"values": "AAAA"}, id="too few"),
        pytest.param({"values": ""}, id="nothing"),
        pytest.param({"num": 1, "values": base64.b64encode(bytes(784)).decode()}, id="one colour"),
        pytest.param(
            {"num": 2, "values": base64.b64encode(bytes(range(256)) * 8).decode()}, id="another size"
        ),
    ],
)
def test_what_does_not_fit_is_left_out(
    request_of: Callable[..., ScoringRequest], change: dict[str, Any]
) -> None:
    assert compared(request_of(look(OTHERS) | change)) == []
    assert compared(request_of(look(OTHERS) | change, look(OTHERS, 1))) == [(1, 32, 32)]


def test_events_that_are_none_are_passed_over(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.trace"
    told = (
        '"num": 0, "values": "AA=="',
        '"num": 33, "values": "AA=="',
        '"num": 1, "values": 7',
        '"num": 1',
        '"num": 1, "values": "' + "A" * 180_000 + '"',
        *['"num": 2, "values": "AAE="'] * 20,
    )
    trace.write_text("".join(f'0.1\t{{"e": "pictures", "t": 0.1, "n": 4, {one}}}\n' for one in told))
    assert told_by(3, trace).pictures == [{"rank": 3, "num": 2, "text": False, "values": "AAE="}] * 16
