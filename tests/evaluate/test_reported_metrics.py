"""`metrics.json` as scripts write it, carelessly or with intent."""

from __future__ import annotations

import contextlib
import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.evaluate.files.reported_metrics import KEYS, MAX_EPOCHS, parse
from grader.model.metric import ACCURACY
from grader.settings import BUILT_IN


def test_an_honest_file_keeps_the_known_numbers() -> None:
    content = b"""{"schema": 1, "who": "me", "epochs": [
        {"train_loss": 1.5, "val_accuracy": 0.5, "val_loss": 2, "seconds": 3.25, "note": "x", "f1": 0.3},
        {"train_loss": 1}, {}]}"""
    assert parse(content).epochs == (
        {"train_loss": 1.5, "val_accuracy": 0.5, "val_loss": 2.0, "seconds": 3.25},
        {"train_loss": 1.0},
        {},
    )


@pytest.mark.parametrize("page", ["task-authors", "learners"])
def test_the_file_that_a_page_shows_is_read_to_the_last_key(page: str) -> None:
    text = (BUILT_IN / "docs" / f"{page}.md").read_text()
    (shown,) = (block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if "epochs" in block)
    metrics = {
        name: replace(ACCURACY, name=name, reported_as=f"val_{name}") for name in ("perplexity", "top5")
    }
    read = parse(shown.encode(), (ACCURACY, *metrics.values()))
    assert len(read.epochs) == 2
    assert not read.unknown


def epoch(text: str) -> bytes:
    return b'{"schema": 1, "epochs": [{"train_loss": ' + text.encode() + b"}]}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (epoch("NaN"), "NaN, which is no JSON number"),
        (epoch("-Infinity"), "-Infinity, which is no JSON number"),
        (epoch("1e400"), "1e400, which is larger than any float"),
        (epoch("9" * 400), "larger than any float"),
        (epoch("9" * 5000), "integer"),
        (epoch("true"), "epoch 1, train_loss is no number"),
        (epoch('"0.9"'), "epoch 1, train_loss is no number"),
        (epoch("null"), "epoch 1, train_loss is no number"),
        (epoch('1, "train_loss": 2'), "the key 'train_loss' twice"),
        (epoch("[" * 100_000 + "]" * 100_000), "nested more than 16 deep"),
        (b'{"schema": 2, "epochs": []}', "does not start as"),
        (b'{"schema": true, "epochs": []}', "does not start as"),
        (b"[]", "does not start as"),
        (b'{"schema": 1}', 'no list "epochs"'),
        (b'{"schema": 1, "epochs": [3]}', "epoch 1 is no object"),
        (b'{"schema": 1, "epochs": [', "is not JSON: "),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "is not JSON: "),
        (b'{"schema": 1, "epochs": [' + b"{}," * MAX_EPOCHS + b"{}]}", "at most 10,000 are read"),
    ],
)
def test_whatever_is_wrong_is_one_sentence(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse(content)


def test_brackets_in_text_are_not_depth() -> None:
    content = json.dumps({"schema": 1, "epochs": [], "note": "[" * 100 + '\\"[{'}).encode()
    assert parse(content).epochs == ()


json_values: st.SearchStrategy[Any] = (
    st.sampled_from([None, True, "1", [], {}, {"a": 1}]) | st.integers() | st.floats()
)


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.dictionaries(st.sampled_from([*KEYS, "other"]), json_values), max_size=4))
def test_what_is_accepted_is_finite_numbers_under_known_names(epochs: list[dict[str, Any]]) -> None:
    try:
        found = parse(json.dumps({"schema": 1, "epochs": epochs}).encode())
    except ValueError:
        return
    assert len(found.epochs) == len(epochs)
    for shown, given_epoch in zip(found.epochs, epochs, strict=True):
        assert shown.keys() == given_epoch.keys() & set(KEYS)
        # A whole number beyond 2**53 becomes the float next to it.
        assert all(math.isfinite(v) and v == float(given_epoch[k]) for k, v in shown.items())


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_explained(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(e, dict) for e in parse(content).epochs)
