"""Act right after a module has been imported, whether that has happened already or comes later.

For libraries that a script may or may not use: nothing is imported on our own account.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Watcher:
    """A finder that finds nothing itself: it lets the others find and adds a step after execution."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[], Any]]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        actions = self.waiting.pop(name, None)  # popped first: the search below comes through here again
        if actions is None:
            return None
        spec = importlib.util.find_spec(name)
        loader = spec.loader if spec is not None else None
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for action in actions:
                action()

        try:
            # On the loader's instance, so that its type (and with it inspect and pkgutil) stays what it is.
            vars(loader)["exec_module"] = exec_module
        except TypeError:
            pass  # a loader without attributes of its own
        return spec


_watcher = _Watcher()


def once_imported(name: str, action: Callable[[], Any]) -> None:
    """Call `action` now if the module is there, else as soon as its import has finished."""
    if name in sys.modules:
        action()
        return
    _watcher.waiting.setdefault(name, []).append(action)
    if _watcher not in sys.meta_path:
        sys.meta_path.insert(0, _watcher)
