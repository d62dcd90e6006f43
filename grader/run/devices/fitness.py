"""Which GPUs of a host are fit to be handed out, beyond what NVML itself complains of: what the lease book knows of them.

Pure: the same arguments give the same answer. A reason is a clause of a sentence; where there are several they all stand.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from grader.run.devices.hardware import Gpu, Inventory
from grader.run.devices.lease_book import Quarantine


def keep_quarantine(stock: Inventory, quarantined: Mapping[str, Quarantine]) -> Inventory:
    """The same host, with what is in quarantine unfit."""
    return replace(
        stock,
        gpus=tuple(
            _unfit(gpu, _quarantine(entry)) if (entry := quarantined.get(gpu.uuid)) is not None else gpu
            for gpu in stock.gpus
        ),
    )


def _quarantine(entry: Quarantine) -> str:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.since_unix_s))
    return f"in quarantine since {since}: {entry.reason} (`grader devices --release UUID` ends it)"


def _unfit(gpu: Gpu, reason: str) -> Gpu:
    return replace(gpu, unfit="; ".join(filter(None, (gpu.unfit, reason)))) if reason else gpu
