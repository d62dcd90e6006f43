"""Which GPUs of a host are fit to be handed out, beyond what NVML itself complains of.

Pure: the same arguments give the same answer. A reason is a clause of a sentence; where there are several, all stand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from grader.run.devices.hardware import Gpu, Inventory
from grader.run.devices.lease_book import Quarantine
from grader.run.devices.torch_build import TorchBuild

_MOST_FOREIGN_BYTES = 512 << 20
"""A display, or a monitor of a cluster, takes less; with more gone, a learner would run out of memory for others."""


def keep_quarantine(stock: Inventory, quarantined: Mapping[str, Quarantine]) -> Inventory:
    """What is in quarantine is unfit."""

    def reason(gpu: Gpu) -> str:
        entry = quarantined.get(gpu.uuid)
        if entry is None:
            return ""
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.since_unix_s))
        return f"in quarantine since {since}: {entry.reason} (`grader devices --release {gpu.uuid}` ends it)"

    return _judge(stock, reason)


def keep_others(stock: Inventory, held: Collection[str]) -> Inventory:
    """What nobody holds and somebody uses is unfit for as long as they do; `held`: UUIDs that are leased."""

    def reason(gpu: Gpu) -> str:
        if gpu.uuid in held:
            return ""
        if gpu.num_processes:
            names = ", ".join(gpu.processes) or f"{gpu.num_processes} processes"
            return f"others compute on it without a lease: {names}"
        if gpu.used_bytes > _MOST_FOREIGN_BYTES:
            return f"others use {gpu.used_bytes >> 20} MiB of its memory, and nobody holds it"
        return ""

    return _judge(stock, reason)


def keep_torch(stock: Inventory, build: TorchBuild | None) -> Inventory:
    """What this PyTorch can't run on is unfit; None: nobody knows which it is."""
    return stock if build is None else _judge(stock, build.refusal)


def _judge(stock: Inventory, reason: Callable[[Gpu], str]) -> Inventory:
    judged = ((gpu, reason(gpu)) for gpu in stock.gpus)
    return replace(
        stock,
        gpus=tuple(
            replace(gpu, unfit=f"{gpu.unfit}; {why}" if gpu.unfit else why) if why else gpu
            for gpu, why in judged
        ),
    )
