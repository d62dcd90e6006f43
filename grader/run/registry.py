"""Runtimes, found by folder: one module of `runtimes` is one runtime, offered under its own name.

A module is a runtime when it has `RUNTIME`, a class that implements the protocol in `runtime`. Nothing is started here.
"""

from __future__ import annotations

import importlib
import pkgutil

from grader.errors import UsageError
from grader.run import runtimes
from grader.run.runtime import Runtime


def find_runtimes() -> dict[str, type[Runtime]]:
    """All runtimes by name, whether or not this machine can run them; sorted."""
    found: dict[str, type[Runtime]] = {}
    for module in pkgutil.iter_modules(runtimes.__path__):
        runtime = importlib.import_module(f"{runtimes.__name__}.{module.name}").RUNTIME
        found[runtime.name] = runtime
    return dict(sorted(found.items()))


def open_runtime(name: str) -> Runtime:
    """The runtime of that name, not yet entered.

    Raises:
        UsageError: there is none of that name.
    """
    found = find_runtimes()
    if name not in found:
        raise UsageError(f"There is no runtime {name!r}. There is: {', '.join(found)}.")
    return found[name]()
