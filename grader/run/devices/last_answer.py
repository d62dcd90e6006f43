"""What the driver told last, so that a GPU that has gone is missed, and it is known what was there before it hung.

Kept beside the lease book, only where there are GPUs. Forgotten at the next start of the host, as hardware may change
then, and by whoever sees another part of the host: another container, or another job of a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from grader.files import write_whole
from grader.json_reader import read_json
from grader.run.devices.hardware import Gpu
from grader.run.devices.lease_book import boot_id


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """One GPU, and when the driver last showed it."""

    uuid: str
    index: int
    name: str
    seen_unix_s: float


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """All GPUs that were seen since the host's start, by index; `view`: which part of which host that is."""

    view: str
    gpus: tuple[SeenGpu, ...] = ()

    def __str__(self) -> str:
        names = Counter(gpu.name for gpu in self.gpus)
        when = _clock(max(gpu.seen_unix_s for gpu in self.gpus))
        return f"at {when} it showed {', '.join(f'{num} × {name}' for name, num in names.items())}"

    def complete(self, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
        """These, with the UUID of one that can't tell it any more, and with those that are missing, unfit."""
        there = {gpu.uuid for gpu in gpus}
        lost = {seen.index: seen for seen in self.gpus if seen.uuid not in there}
        named = [
            replace(gpu, uuid=seen.uuid, name=seen.name)
            if gpu.unfit and not gpu.name and (seen := lost.pop(gpu.index, None)) is not None
            else gpu
            for gpu in gpus
        ]
        named += [
            Gpu(
                seen.uuid,
                seen.index,
                seen.name,
                unfit=f"the driver showed it at {_clock(seen.seen_unix_s)} and does not any more: "
                "see Xid in the kernel's log",
            )
            for seen in lost.values()
        ]
        return tuple(sorted(named, key=lambda gpu: (gpu.index, bool(gpu.unfit))))


def recall(folder: Path) -> LastAnswer:
    """What was told last from here; without GPUs where nothing was, or it can't be read."""
    view = " ".join(
        (
            boot_id(),
            platform.node(),
            *(os.environ.get(name, "") for name in ("SLURM_JOB_ID", "NVIDIA_VISIBLE_DEVICES")),
        )
    )
    try:
        last = read_json(LastAnswer, _path(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return LastAnswer(view)
    return last if last.view == view else LastAnswer(view)


def remember(folder: Path, last: LastAnswer, gpus: Sequence[Gpu]) -> None:
    """Keep what the driver showed just now; for a folder that can't be written, nothing is kept."""
    known = {seen.uuid: seen for seen in last.gpus}
    known |= {gpu.uuid: SeenGpu(gpu.uuid, gpu.index, gpu.name, time.time()) for gpu in gpus if gpu.name}
    text = json.dumps(
        asdict(LastAnswer(last.view, tuple(sorted(known.values(), key=lambda seen: seen.index))))
    )
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(_path(folder), text)


def _path(folder: Path) -> Path:
    return folder / "driver.json"


def _clock(unix_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix_s))
