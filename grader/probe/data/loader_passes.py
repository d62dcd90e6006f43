"""Who saw which sample: index batches as they are drawn, and batches as they are delivered.

Both happen in the rank's own process, with workers too: `_next_index` draws (ahead, when workers prefetch), `__next__`
delivers. Only delivered batches count.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from grader.probe.data.datasets import MAX_INDICES, Root, index_list, num_samples, state
from grader.probe.data.loaders import TrackedLoader, built, loader_of, sampler_of, whole
from grader.probe.hooks import code_locations, sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded, replace
from grader.probe.trace import events
from grader.probe.trace.writer import clock, writer

_MAX_CREDIT_BATCHES = 4
"""Batches that may wait between a loader and the model before they no longer explain what the model is fed."""


_FIRST = 16
"""Steps before which every batch's labels are told; later those before some steps, sampled at random."""
_MAX_LABELS = 1024
_looks = sampling.SampledSteps(8)

before_batch: list[Callable[[], None]] = []
"""Called whenever a batch is asked for."""


class _Pass:
    """One pass over a loader, by one iterator."""

    __slots__ = ("batches", "delivered", "drawn", "head", "in_order", "loader", "n", "open", "state", "watch")

    def __init__(self, loader: TrackedLoader, *, in_order: bool) -> None:
        self.loader = loader
        self.in_order = in_order
        self.n = loader.passes
        loader.passes += 1
        self.head = f'"loader":{loader.id},"pass":{self.n}'
        self.drawn: dict[int, Any] = {}
        self.batches = 0  # drawn so far
        self.delivered = 0
        self.open = True
        self.state = state(loader.root.dataset)
        self.watch: Any = None


_passes: dict[int, _Pass] = {}
_last_received: dict[int, int] = {}


@guarded("pass")
def _begin(iterator: Any, loader: Any) -> None:
    known = loader_of(loader)
    if known is None:
        return
    previous = _passes.get(id(iterator))
    if previous is not None:
        _end(previous, False)
    in_order = not loader.num_workers or getattr(loader, "in_order", True)
    current = _passes[id(iterator)] = _Pass(known, in_order=in_order)
    current.watch = weakref.ref(iterator, functools.partial(_gone, id(iterator)))
    epoch = whole(getattr(sampler_of(loader), "epoch", None))
    counters.passes += 1
    writer.write(
        events.PASS,
        loader=known.id,
        n=current.n,
        sampler_epoch=epoch,
        site=code_locations.here(),
        state=current.state,
    )


def _gone(key: int, _: object) -> None:
    """The iterator was thrown away: after a `break`, or after running dry."""
    current = _passes.pop(key, None)
    _last_received.pop(key, None)
    if current is not None:
        _end(current, False)


@guarded("pass end")
def _end(current: _Pass, exhausted: bool) -> None:
    if not current.open:
        return
    current.open = False
    if exhausted and counters.unfed_batches >= _MAX_CREDIT_BATCHES:
        counters.credit = 0  # read through without feeding a model: the samples went elsewhere
    if not counters.credit:
        counters.explained = (
            False  # a model was given them all, as in validation: what it is given next is not of them
        )
    writer.write(
        events.PASS_END,
        loader=current.loader.id,
        **{"pass": current.n},
        num_batches=current.delivered,
        exhausted=exhausted,
        **({} if state(current.loader.root.dataset) == current.state else {"changed": True}),
    )


@guarded("batch")
def _delivered(iterator: Any, current: _Pass, data: Any, started: float) -> None:
    # Every batch pays for this: nothing is called that has nothing to do.
    t = clock()
    wait_s = t - started
    now = counters
    now.data_s += wait_s
    n = number = current.delivered
    current.delivered = n + 1
    if not current.in_order:
        number = _last_received.get(id(iterator), -1)
    root = current.loader.root
    drawn = current.drawn.pop(number, None)
    indices = index_list(drawn) if root.resolvable and drawn is not None else None
    labels = ""
    if indices is None:
        size = min(num_samples(data), MAX_INDICES)
    else:
        size = len(indices)
        if root.resolve is not list:
            indices = _resolved(root, indices)
        if indices is not None and not root.hides:
            # Only the newest batches can still explain what a model is given next.
            if size > now.largest_batch:
                now.largest_batch = size
            now.credit = min(now.credit + size, now.largest_batch * _MAX_CREDIT_BATCHES)
            now.explained = True
        steps = now.steps
        if steps < _FIRST or (steps >= _looks.next and _looks.at(steps)):
            labels = _labels(data, size)
    now.delivered += size
    now.unfed_batches += 1
    now.newest = current
    writer.send(
        f'{{"e":"batch","t":{t - writer.origin:.6f},{current.head},"n":{n},"size":{size},'
        f'"indices":{"null" if indices is None else indices},"wait_s":{wait_s:.6f}{labels}}}'.encode()
    )


def _resolved(root: Root, indices: list[int]) -> list[int] | None:
    """Indices of the root; None where a class of the script's own asks for something else this time."""
    try:
        return root.resolve(indices)
    except Exception:  # noqa: BLE001 - of that class: the loader has raised it already, or nothing came of it
        return None


def _labels(data: Any, size: int) -> str:
    """Those of a batch, as one more field; nothing where it has no whole numbers, one for each sample."""
    import torch

    parts = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else ()
    for part in parts:
        if (
            isinstance(part, torch.Tensor)
            and part.dtype == torch.int64
            and part.shape == (size,)
            and part.is_cpu
        ):
            return f',"labels":{torch._C.TensorBase.tolist(part)}' if size <= _MAX_LABELS else ""
    return ""


def close() -> None:
    """Write the end of every pass that is still open when the script ends."""
    for current in list(_passes.values()):
        _end(current, False)


def install() -> None:
    """Hook DataLoader and its iterators."""
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    replace([dataloader.DataLoader], "__init__", _wrap_built)
    replace([base], "__init__", _wrap_begin)
    replace([base], "_reset", _wrap_reset)
    replace([base], "_next_index", _wrap_drawn)
    replace([base], "__next__", _wrap_delivered)
    replace([dataloader._MultiProcessingDataLoaderIter], "_get_data", _wrap_received)


def _wrap_built(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        built(self, code_locations.here())

    return __init__


def _wrap_begin(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, loader, *args, **kwargs)
        _begin(self, loader)

    return __init__


def _wrap_reset(original: Any) -> Any:
    @functools.wraps(original)
    def _reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            _begin(self, loader)  # before the original: it draws the first batches of the new pass
        original(self, loader, first_iter)

    return _reset


def _wrap_drawn(original: Any) -> Any:
    @functools.wraps(original)
    def _next_index(self: Any) -> Any:
        drawn = original(self)
        current = _passes.get(id(self))
        if current is not None:
            current.drawn[current.batches] = drawn
            current.batches += 1
        return drawn

    return _next_index


def _wrap_received(original: Any) -> Any:
    @functools.wraps(original)
    def _get_data(self: Any) -> Any:
        received = original(self)
        if not self._in_order and isinstance(received[0], int):
            _last_received[id(self)] = received[0]
        return received

    return _get_data


def _wrap_delivered(original: Any) -> Any:
    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        current = _passes.get(id(self))
        if current is None:
            return original(self)
        for action in before_batch:
            action()
        started = clock()
        try:
            data = original(self)
        except StopIteration:
            _end(current, True)
            raise
        _delivered(self, current, data, started)
        return data

    return __next__
