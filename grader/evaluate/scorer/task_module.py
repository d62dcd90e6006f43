"""A task's evaluate.py as a module of the scorer, with the modules that lie beside it."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from grader.evaluate.scorer.author_faults import TaskFaultError, author_call


def import_file(path: Path, name: str) -> ModuleType:
    """A file as a module of this name; it may import modules that lie beside it, which are no other task's then.

    Raises:
        TaskFaultError: it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TaskFaultError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    with _beside(path.parent):
        author_call(lambda: spec.loader.exec_module(module), "importing it")  # type: ignore[union-attr]
    return module


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{folder}/"):
                del sys.modules[name]
