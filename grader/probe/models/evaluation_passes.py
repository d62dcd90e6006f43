"""Runs of forward passes outside training: where they began, in which mode, and how many samples they took."""

from __future__ import annotations

from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.models.fingerprints import sample_hashes
from grader.probe.trace import events
from grader.probe.trace.writer import writer


class _Evaluation:
    """Forward passes from one place, one after the other."""

    __slots__ = ("forwards", "key", "samples")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.forwards = 0
        self.samples = 0


_MAX_HASHED = 512
"""Samples that are looked at, the first ones: of data sets that say they are for validation, and of others."""

_running: _Evaluation | None = None
_num_hashed = {True: 0, False: 0}


def note(wrap: int | None, through_wrapper: bool, training: bool, grad: bool, size: int, batch: Any) -> None:
    """Count a forward pass that trains nothing.

    Args:
        wrap: id of the model's WRAP event. through_wrapper: whether it went through that wrapper.
        training, grad: whether the model was in training mode, and gradients were recorded.
        size: samples of its batch, which is the first tensor it was given.
    """
    global _running
    key = (wrap, through_wrapper, training, grad, code_locations.here())
    if _running is None or _running.key != key:
        end()
        _running = _Evaluation(key)
        counters.evaluations += 1
        _write("begin", _running)
    _running.forwards += 1
    _running.samples += size
    newest = counters.newest
    if (
        newest is not None
        and batch is not None
        and size
        and _num_hashed[newest.loader.validates] < _MAX_HASHED
    ):
        _look(batch, newest)


def put_away(samples: int) -> bool:
    """Count samples back of which the last pass made nothing; False where that pass was one of training."""
    if _running is None:
        return False
    _running.samples -= samples
    return True


@guarded("evaluated samples", values=True)
def _look(batch: Any, newest: Any) -> None:
    validates, hashes = newest.loader.validates, sample_hashes(batch)
    _num_hashed[validates] += len(hashes)
    writer.write(
        events.EVALUATED,
        hashes=hashes,
        loader=newest.loader.id,
        n=newest.delivered - 1,
        validates=validates,
        **{"pass": newest.n},
    )


def _write(op: str, evaluation: _Evaluation, **more: bool) -> None:
    wrap, through, training, grad, site = evaluation.key
    writer.write(
        events.EVALUATION,
        op=op,
        wrap=wrap,
        through_wrapper=through,
        site=site,
        num_forwards=evaluation.forwards,
        num_samples=evaluation.samples,
        training_mode=training,
        grad_enabled=grad,
        **more,
    )


def end(*, trained: bool = False) -> None:
    """Training goes on, or the script ends: the run of evaluating passes is over.

    `trained`: a step came of them, so that they were none of evaluation.
    """
    if _running is not None:  # every step asks, and most of them for nothing
        _end(trained)


@guarded("evaluation")
def _end(trained: bool) -> None:
    global _running
    if _running is not None:
        finished, _running = _running, None
        _, _, _, grad, _ = finished.key
        _write("end", finished, **({"trained": True} if trained and grad else {}))
