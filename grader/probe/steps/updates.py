"""Weights that change although no optimizer of torch's holds them: a step all the same.

Whoever writes the update by hand, steps tensors of its own and copies them back (ZeRO by hand, master weights), or
trains through `functional_call` is seen by what a module's training forward passes are given: other weights than the
time before, after gradients were taken. Looks only at modules that no optimizer holds.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.data import loader_passes
from grader.probe.gradients.gradient_clearing import Watch
from grader.probe.hooks import sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models, trained_models
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.models.used_weights import UsedWeights
from grader.probe.steps.step_events import EVERY, FIRST_SAMPLED, next_id, write_step
from grader.probe.steps.weight_looks import draw, write_params
from grader.probe.trace.writer import clock

_MAX_LOOKS = 1024


class _Hand:
    """The script's own hand, as one that steps; see `Stepper`."""

    def __init__(self) -> None:
        self.head = f'"optimizer":{next_id()},"kind":""'
        self.seconds: float | None = None
        self.steps = 0
        self.watch: Watch | None = None


_hand: _Hand | None = None
_due: int | None = None
_newest: weakref.ref[TrackedModel] | None = None


def _step(known: TrackedModel) -> bool:
    """Whether the weights are others than at the last look, and came of training; written where nobody else does."""
    global _hand, _due
    weights = known.weights
    if weights is None:
        return False
    if not weights.changed():
        known.looks += 1
        known.stepped = known.looks >= _MAX_LOOKS  # nobody does
        return False
    known.looks = 0
    if tracked_models.belongs_elsewhere(known, weights.current()):
        known.stepped = True
        return False
    if counters.beside:
        # The optimizer has told of its step; what came of it is here.
        counters.beside = False
        number, sampled = counters.steps - 1, _sampled(counters.steps - 1)
    elif counters.micro_backwards or counters.derivatives:
        if _hand is None:
            _hand = _Hand()
        number, sampled = counters.steps, _sampled(_hand.steps)
        more: dict[str, Any] = {"grads": None, "grad_names": [], "site": None} if sampled else {}
        write_step(_hand, clock(), "[]", more)
        counters.step_ended = clock()
    else:
        return False
    if sampled:
        _due = number
    known.trains = True
    trained_models.mark_trained(known)
    return True


def _sampled(step: int) -> bool:
    return step < FIRST_SAMPLED or sampling.is_sampled(step, EVERY)


@guarded("update", values=True)
def _at_forward(known: TrackedModel, model: Any) -> None:
    global _newest
    if known.weights is None:
        known.weights = UsedWeights(model)
        known.stepped = not known.weights.names
        if _newest is None:  # every batch of a run would pay for it, and few runs train by hand
            loader_passes.before_batch.append(_at_batch)
        _newest = weakref.ref(known)
    _step(known)
    counters.module_trained = True
    if known.weights.replaced and not known.stepped:
        _lend(known)
    elif known.trains and not known.stepped:
        _newest = weakref.ref(known)
        trained_models.note_versions(known)
    _write_due(known)


def _write_due(known: TrackedModel) -> None:
    global _due
    if _due is not None and known.trains and known.weights is not None:
        due, _due = _due, None
        drawn = draw(due, known.weights.others, known.weights.other)
        write_params(due, known.weights.names, known.weights.sums(), drawn)


def _lend(known: TrackedModel) -> None:
    global _newest
    _newest = weakref.ref(known)
    known.lends = True
    trained_models.forget_lent(known)
    if _at_evaluation not in tracked_models.before_evaluation:
        tracked_models.before_evaluation.append(_at_evaluation)


@guarded("update", values=True)
def _at_evaluation(known: TrackedModel) -> None:
    """What such a model is evaluated with first is what training led to: the module's own weights are not."""
    if known.stepped or known.trained or known.weights is None:
        return
    _step(known)
    _write_due(known)
    if known.trains:
        trained_models.hold_lent(known, {*known.weights.names, *known.weights.others})


@guarded("update", values=True)
def _at_batch() -> None:
    known = _newest() if _newest is not None else None
    # Between calls, a module that lends itself to other weights holds its own ones again.
    if known is not None and not known.stepped and not (known.weights and known.weights.elsewhere()):
        _step(known)


def close() -> None:
    """The script is over: its last update has no forward pass after it."""
    _at_batch()
    _after_all()


@guarded("update", values=True)
def _after_all() -> None:
    """Of weights that are lent, the last gradients alone tell that there are newer ones."""
    known = _newest() if _newest is not None else None
    if known is not None and known.lends and not known.stepped:
        _step(known)


def install() -> None:
    """Look where weights are about to be used."""
    tracked_models.before_training_forward.append(_at_forward)
