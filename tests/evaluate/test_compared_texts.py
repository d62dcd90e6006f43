"""Passages of the text for validation are found in what models were given; what is made of training texts never is."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.evaluate.audit.compared_texts import compared_texts
from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest

Numbers = NDArray[np.int64]
WINDOW = 64


def written(num: int, seed: int) -> str:
    """A text of words that come again and again, with lines of dashes."""
    words = np.random.default_rng(0)
    known = ["".join(words.choice([*"etaoinshrdlucmfwyp"], words.integers(2, 9))) for _ in range(300)]
    rng = np.random.default_rng(seed)
    return " ".join(rng.choice([*known, "-" * 24], num))


BOTH = written(300, 3)
"""A passage that stands in both texts."""
TRAIN, VALIDATION = written(6000, 1) + BOTH, BOTH + written(800, 2)
APART = VALIDATION[len(BOTH) :]


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ScoringRequest]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "validation").mkdir()
    (folder / "train.txt").write_text(TRAIN)
    (folder / "picture.bin").write_bytes(bytes([255, 254]) * 99)
    (folder / "validation" / "text.txt").write_text(VALIDATION)
    return lambda *looks: ScoringRequest("score", "", str(folder), "", "1", told_pictures=list(looks))


def windows(text: str, width: int = WINDOW, num: int = 32) -> Numbers:
    """Cut anywhere, as any numbers: those of the characters, permuted."""
    rng = np.random.default_rng(4)
    numbers = rng.permutation(50_000)[np.frombuffer(text.encode(), np.uint8)]
    return np.stack([numbers[i : i + width] for i in rng.integers(0, len(numbers) - width, num)])


def look(rows: Numbers, rank: int = 0) -> dict[str, Any]:
    """As a rank tells them."""
    values = base64.b64encode(rows.astype("<u2").tobytes()).decode()
    return {"rank": rank, "num": len(rows), "text": True, "values": values}


def share(request: ScoringRequest) -> float:
    found = compared_texts(request, ScoringCache(), lambda _: None)["texts"]
    return float(sum(one["num_validation"] for one in found) / sum(one["num"] for one in found))


def noise(rows: Numbers, amount: float = 0.1) -> Numbers:
    rng = np.random.default_rng(5)
    return np.where(rng.random(rows.shape) < amount, rng.choice(rows.ravel(), rows.shape), rows)


def joined(some: Numbers, others: Numbers) -> Numbers:
    return np.concatenate([some[:, :24], others[:, : WINDOW - 24]], 1)


@pytest.mark.parametrize(
    ("given", "least"),
    [
        pytest.param(windows(APART), 0.9, id="windows"),
        pytest.param(windows(APART, 32), 0.9, id="short windows"),
        pytest.param(windows(APART, 2048, 1), 0.9, id="a packed text"),
        pytest.param(noise(windows(APART)), 0.2, id="noise"),
        pytest.param(joined(windows(TRAIN), windows(APART)), 0.4, id="joined to training text"),
    ],
)
def test_validation_text_is_found(
    request_of: Callable[..., ScoringRequest], given: Numbers, least: float
) -> None:
    assert share(request_of(look(given))) > least
    half = windows(TRAIN, given.shape[1], len(given))
    assert share(request_of(look(given), look(half, 1))) > least / 2


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(windows(TRAIN), id="windows"),
        pytest.param(windows(TRAIN, 2048), id="long windows"),
        pytest.param(windows(BOTH), id="what stands in both texts"),
        pytest.param(windows("-" * 200), id="one symbol"),
        pytest.param(windows(APART, 16), id="too short to tell"),
        pytest.param(np.random.default_rng(6).integers(0, 96, (32, WINDOW)), id="random numbers"),
        pytest.param(np.arange(WINDOW)[None].repeat(32, 0), id="counted up"),
    ],
)
def test_nothing_is_found_elsewhere(request_of: Callable[..., ScoringRequest], given: Numbers) -> None:
    assert share(request_of(look(given))) == 0


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(noise(windows(TRAIN)), id="noise"),
        pytest.param(noise(windows(TRAIN), 0.02), id="little noise"),
        pytest.param(np.pad(windows(TRAIN)[:, :30], ((0, 0), (0, 34))), id="filled up"),
        pytest.param(joined(windows(TRAIN), windows(TRAIN)[::-1]), id="joined"),
        pytest.param(np.where(np.arange(WINDOW) % 7 == 3, 0, windows(TRAIN)), id="masked"),
    ],
)
def test_next_to_nothing_is_found_in_what_is_made_of_training_text(
    request_of: Callable[..., ScoringRequest], given: Numbers
) -> None:
    assert share(request_of(look(given))) < 0.01


@pytest.mark.parametrize("change", [{"num": 7}, {"values": "§"}, {"values": "AAA="}, {"values": ""}])
def test_what_does_not_fit_is_left_out(
    request_of: Callable[..., ScoringRequest], change: dict[str, Any]
) -> None:
    request = request_of(look(windows(APART)) | change)
    assert compared_texts(request, ScoringCache(), lambda _: None) == {"texts": []}


def test_without_two_texts_nothing_is_compared(tmp_path: Path) -> None:
    request = ScoringRequest("score", "", str(tmp_path), "", "1", told_pictures=[look(windows(APART))])
    (tmp_path / "train.txt").write_text(TRAIN)
    assert compared_texts(request, ScoringCache(), lambda _: None) == {"texts": []}
