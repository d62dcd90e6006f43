"""The models that optimizers have stepped: noted at their first step, and their weights as the script leaves them."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

from grader.probe.hooks.patches import guarded
from grader.probe.hooks.transforms import plain
from grader.probe.models import evaluation_passes
from grader.probe.models.fingerprints import fingerprint, is_sharded, sums
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_FINAL = 512

_version = operator.attrgetter("_version")
_finals: list[TrackedModel] = []


def mark_trained(known: TrackedModel) -> None:
    """An optimizer has stepped over this model's parameters: they belong to the run's result."""
    model = known.model()
    if model is None or known.trained or known.lends:
        return
    _hold(known, [(name, plain(p)) for name, p in model.named_parameters() if p.requires_grad])
    _finals.append(known)
    for old in _finals[:-2]:
        old.trained, old.some = [], []  # no more than two models are kept from being freed
    del _finals[:-2]


def hold_lent(known: TrackedModel, names: Collection[str]) -> None:
    """Weights that the model was lent for a pass of evaluation are the trained ones, until it is trained again."""
    model = known.model()
    if model is not None:
        _hold(known, [(name, plain(p)) for name, p in model.named_parameters() if name in names])
        note_versions(known)


def _hold(known: TrackedModel, named: list[tuple[str, Any]]) -> None:
    known.trained = named[:_MAX_FINAL]
    known.some = [p for _, p in known.trained[:4]]


def forget_lent(known: TrackedModel) -> None:
    """The model is trained on: what it was lent is no longer what is trained, and not kept from being freed."""
    known.trained, known.some = [], []


def note_versions(known: TrackedModel) -> None:
    """Remember how often a few parameters had been changed in place when the last step was over."""
    known.versions = [*map(_version, known.some)]


def write_finals() -> None:
    """Write the parameters of the trained models as the script leaves them."""
    evaluation_passes.end()
    for known in _finals:
        if known.trained:
            _write_final(known)


def trained_now(held: list[float | None]) -> bool:
    """Whether these sums of weights are those of a trained model as it is now, and perhaps of more."""
    there = set(held)
    return any(known.trained and there.issuperset(sums(p for _, p in known.trained)) for known in _finals)


def some_weights() -> list[float | None]:
    """Fingerprints of the first few weights of each trained model as they are now."""
    return fingerprint(p for known in _finals for p in known.some)


@guarded("final")
def _write_final(known: TrackedModel) -> None:
    writer.write(
        events.FINAL,
        wrap=known.wrap,
        names=[name for name, _ in known.trained],
        sums=sums(p for _, p in known.trained),
        sharded=any(is_sharded(p) for _, p in known.trained),
        touched=known.versions != [*map(_version, known.some)],
    )
