"""Facts about the machine and its versions, as they belong beside a measured time."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in ("torch", "torchvision", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


@cache
def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def environment_facts() -> dict[str, Any]:
    """Versions, processor, cores this process may use, and the load right now."""
    return {
        "python": platform.python_version(),
        **_versions(),
        "cpu_model": _cpu_model(),
        "num_cores": len(os.sched_getaffinity(0)),
        "load_1m": round(os.getloadavg()[0], 2),
        "platform": platform.platform(),
    }
