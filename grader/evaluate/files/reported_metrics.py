"""Parse `metrics.json`, a file that a script wrote about itself: display and cross-checks only, never points.

Strict, because what is shown to people must be numbers: one wrong value makes the file invalid, and the reason is told.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from grader.model.evaluation import ReportedMetrics
from grader.model.metric import ACCURACY, Metric

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_EPOCHS = 10_000
KEYS = ("train_loss", "val_loss", "seconds")
"""Known in any task, beside what its metrics are reported as."""
MAX_UNKNOWN, MAX_KEY = 20, 40
"""Other keys that are told of, and letters of one."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""Gives nothing back and takes one that never ends to the end: no text makes it look twice at the same letters."""


def known_keys(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """What an epoch may report in a task with these metrics, each once."""
    named = (key for metric in metrics for key in (metric.reported_as, metric.trained_as))
    return tuple(dict.fromkeys((*named, *KEYS)))


def parse(content: bytes, metrics: Iterable[Metric] = (ACCURACY,)) -> ReportedMetrics:
    """The epochs as reported, with what these metrics are reported as and `KEYS`; other keys are named alone.

    Raises:
        ValueError: it is not `{"schema": 1, "epochs": [{…}, …]}` with finite numbers; the text says where.
    """
    document = strict_json(content, "metrics.json")
    if (
        not isinstance(document, dict)
        or document.get("schema") != 1
        or isinstance(document.get("schema"), bool)
    ):
        raise ValueError('metrics.json does not start as {"schema": 1, "epochs": […]}')
    epochs = document.get("epochs")
    if not isinstance(epochs, list):
        raise ValueError('metrics.json has no list "epochs"')
    if len(epochs) > MAX_EPOCHS:
        raise ValueError(f"metrics.json reports {len(epochs):,} epochs; at most {MAX_EPOCHS:,} are read")
    keys = known_keys(metrics)
    found = tuple(_epoch(number, epoch, keys) for number, epoch in enumerate(epochs, start=1))
    others = sorted({_shown(key) for epoch in epochs for key in epoch if key not in keys})
    return ReportedMetrics(found, tuple(others[:MAX_UNKNOWN]))


def strict_json(content: bytes, name: str) -> Any:
    """What a JSON file holds: finite numbers, no key twice in one object, no deep nest.

    Raises:
        ValueError: it holds something else; the text names the file and what.
    """

    def constant(word: str) -> float:
        raise ValueError(f"{name} holds {word}, which is no JSON number; the training may have diverged")

    def number(text: str) -> float:
        found = float(text)
        if not math.isfinite(found):
            raise ValueError(f"{name} holds {text[:40]}, which is larger than any float")
        return found

    def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ValueError(f"{name} has the key {twice[:40]!r} twice in one object")
        return found

    _check_depth(content, name)
    try:
        return json.loads(
            content.decode("utf-8"), parse_constant=constant, parse_float=number, object_pairs_hook=whole
        )
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{name} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None


def _epoch(number: int, epoch: Any, keys: Iterable[str]) -> dict[str, float]:
    if not isinstance(epoch, dict):
        raise ValueError(f"metrics.json: epoch {number} is no object")
    return {key: _number(f"epoch {number}, {key}", epoch[key]) for key in keys if key in epoch}


def _shown(key: str) -> str:
    return re.sub(r"[^!-_a-~]", "?", key)[:MAX_KEY]


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"metrics.json: {where} is no number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"metrics.json: {where} is larger than any float") from None
    return number


def _check_depth(content: bytes, name: str) -> None:
    depth = 0
    for bracket in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", content)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise ValueError(f"{name} is nested more than {MAX_DEPTH} deep")
