"""STEP events, whoever stepped: an optimizer of torch's, or the script's own hand."""

from __future__ import annotations

import itertools
import os
from math import isfinite
from typing import Any, Protocol

from grader.probe.communication import process_groups
from grader.probe.gradients.gradient_clearing import Watch
from grader.probe.hooks.counters import counters
from grader.probe.steps import device_steps
from grader.probe.trace.writer import writer

FIRST_SAMPLED = 8
"""Steps of whoever steps that are all fingerprinted."""

EVERY = 32
"""After those, one step in so many is."""

stepped: set[int] = set()
"""Ids of the optimizers of torch's that have begun a step, also of those that another one steps."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_ids = itertools.count()


class Stepper(Protocol):
    """Who steps.

    Attributes:
        head: what its events say about it, as JSON. seconds: of its last step.
        steps: so far. watch: what backward passes found of its last fingerprinted step's gradients.
    """

    head: str
    seconds: float | None
    steps: int
    watch: Watch | None


def next_id() -> int:
    """Steppers are numbered in the order of their first steps."""
    return next(_ids)


def write_step(known: Stepper, t: float, lr: str, more: dict[str, Any], *, asleep: bool = False) -> None:
    """Write a STEP event, and count it.

    Args:
        known: who stepped. t: when, by `writer.clock`.
        lr: learning rates as JSON. more: what is told of a fingerprinted step alone; empty for any other.
        asleep: whether the network was in evaluation mode.
    """
    now = counters
    compute_from = now.compute_from
    compute_s = t - compute_from if compute_from is not None else max(0.0, t - now.step_ended - now.data_s)
    loss, synced, seconds = now.loss, now.synced, known.seconds
    sequence = process_groups.sequence()
    exchanges = ""
    if sequence is not None:
        exchanges = f',"exchanges":{sequence - (now.sequence or 0)}'
        now.sequence = sequence
    # By hand what can be: this is the one event that every step pays for.
    line = (
        f'{{"e":"step","t":{t - writer.origin:.6f},"n":{now.steps},{known.head},"lr":{lr},'
        f'"samples":{now.fed or now.delivered},'
        f'"data_s":{now.data_s:.6f},"compute_s":{compute_s:.6f},'
        f'"optimizer_s":{"null" if seconds is None else f"{seconds:.6f}"},'
        f'"loss":{"null" if loss is None else loss if isfinite(loss) else writer.encode(loss)},'
        f'"synced":{"null" if synced is None else "true" if synced else "false"},'
        f'"backwards":{now.micro_backwards},"unsynced":{now.micro_unsynced}{exchanges}'
    )
    if now.numbers:
        line += f',"numbers":{now.numbers}'
    if asleep:
        line += ',"evaluation_mode":true'
    if known.watch is not None:
        line += f',"empty":{known.watch.empty}'
        if known.watch.lost:
            line += f',"lost":{known.watch.lost}'
        if known.watch.kept:
            line += f',"kept":{writer.encode(known.watch.kept)}'
        known.watch.end()
        known.watch = None
    later = device_steps.told_now()
    if later:
        line += f',"later":{writer.encode(later)}'
    if more:
        rss_bytes, device_bytes = _memory()
        line += "," + writer.encode({"rss_bytes": rss_bytes, "device_bytes": device_bytes, **more})[1:-1]
    writer.send((line + "}").encode())
    known.steps += 1
    now.steps += 1
    now.start_next_step()


def _memory() -> tuple[int | None, int | None]:
    import torch

    rss = None
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            rss = int(os.read(descriptor, 256).split()[1]) * _PAGE_BYTES
        finally:
            os.close(descriptor)
    except (OSError, IndexError, ValueError):
        pass
    device = torch.cuda.memory_allocated() if torch.cuda.is_initialized() else None
    return rss, device
