"""GPUs that failed in a run: kept from everybody until a person lets them back, or the host is started anew.

Kept in the lease book, under its lock, so that no request takes one meanwhile. A book of another boot is not read: so
ends it with a restart. What NVML itself complains of needs none: it is unfit for as long as NVML says so.
"""

from __future__ import annotations

import time
from pathlib import Path

from grader.run.devices.lease_book import Quarantine, open_book, read_book


def quarantine(folder: Path, uuid: str, reason: str) -> None:
    """Hand this GPU out to nobody any more; whoever holds it keeps it until it gives it back.

    Args:
        folder: of the lease book, `devices` in the state folder.
        uuid: the GPU's.
        reason: what people are told, such as "it fell off the bus in attempt-7". The first one stays.

    Raises:
        InfraError: the book can't be kept.
    """
    with open_book(folder) as book:
        book.quarantined.setdefault(uuid, Quarantine(reason, time.time()))


def quarantined(folder: Path) -> dict[str, str]:
    """The reasons by UUID; empty where there is no book.

    Raises:
        InfraError: the book can't be read.
    """
    return {uuid: entry.reason for uuid, entry in read_book(folder).quarantined.items()}


def release_gpu(folder: Path, uuid: str) -> bool:
    """Let a GPU be handed out again; False where it was in no quarantine.

    Raises:
        InfraError: the book can't be kept.
    """
    if uuid not in read_book(folder).quarantined:
        return False
    with open_book(folder) as book:
        return book.quarantined.pop(uuid, None) is not None
