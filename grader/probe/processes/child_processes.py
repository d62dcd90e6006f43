"""Processes that the script starts through multiprocessing; other ways are seen by the audit hook.

DataLoader workers are no news, and never ranks: nothing of them is written, or kept for later.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import sys
from typing import Any

from grader.probe.files.opened_files import note_process
from grader.probe.hooks.patches import guarded, replace
from grader.probe.trace.writer import writer


@guarded("process")
def _starting(process: Any) -> None:
    target = getattr(process, "_target", None)
    name = getattr(target, "__qualname__", type(process).__qualname__)
    if _feeds_loader(process):
        return
    method = (
        getattr(process, "_start_method", None) or multiprocessing.get_start_method(allow_none=True) or "fork"
    )
    note_process(
        "fork" if method == "fork" else "spawn", name, sys._getframe(3)
    )  # past `guarded` and `start`


def _feeds_loader(process: Any) -> bool:
    target = getattr(process, "_target", None)
    return (getattr(target, "__module__", "") or "").startswith("torch.utils.data.")


def _wrap_start(original: Any) -> Any:
    @functools.wraps(original)
    def start(self: Any) -> None:
        _starting(self)
        writer.gathers_in_children = not _feeds_loader(self)
        try:
            original(self)
        finally:
            writer.gathers_in_children = True

    return start


def install() -> None:
    """Hook the start of processes."""
    replace([multiprocessing.process.BaseProcess], "start", _wrap_start)
