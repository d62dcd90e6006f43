"""Processes that the script starts through multiprocessing; other ways are seen by the audit hook.

DataLoader workers are no news. Nothing is hooked in the children: they never write.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import sys
from typing import Any

from grader.probe.files import note_process
from grader.probe.patches import guarded, replace


@guarded("process")
def _starting(process: Any) -> None:
    target = getattr(process, "_target", None)
    name = getattr(target, "__qualname__", type(process).__qualname__)
    if (getattr(target, "__module__", "") or "").startswith("torch.utils.data."):
        return
    method = (
        getattr(process, "_start_method", None) or multiprocessing.get_start_method(allow_none=True) or "fork"
    )
    note_process(
        "fork" if method == "fork" else "spawn", name, sys._getframe(3)
    )  # past `guarded` and `start`


def _wrap_start(original: Any) -> Any:
    @functools.wraps(original)
    def start(self: Any) -> None:
        _starting(self)
        original(self)

    return start


def install() -> None:
    """Hook the start of processes."""
    replace([multiprocessing.process.BaseProcess], "start", _wrap_start)
