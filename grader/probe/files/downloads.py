"""Data sets that are asked to download themselves, and whether a download really began.

Makes no request and stops none.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.imports import once_imported
from grader.probe.hooks.patches import guarded, replace
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_FETCHING = ("_get_redirect_url", "_urlretrieve", "_save_response_content", "download_file_from_google_drive")
_ENTRIES = ("download_url", "download_and_extract_archive")

_asking: list[dict[str, Any]] = []


@guarded("download")
def _finished(asked: dict[str, Any]) -> None:
    writer.write(events.DOWNLOAD, **asked)


def _asked(name: str, dataset: str | None) -> Any:
    """Wrap something that may download: outermost call only, told also when it fails."""

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if _asking:
                return original(*args, **kwargs)
            first = args[0] if args else None
            asked = {
                "dataset": type(first).__name__ if dataset is None else dataset,
                "root": str(getattr(first, "root", "") if dataset is None else (args[1:2] or ("",))[0]),
                "site": code_locations.here(),
                "guarded": None,
                "started": name == "download_url_to_file",
            }
            _asking.append(asked)
            try:
                return original(*args, **kwargs)
            finally:
                _asking.clear()
                _finished(asked)

        return wrapper

    return make


def _wrap_fetch(original: Any) -> Any:
    @functools.wraps(original)
    def fetch(*args: Any, **kwargs: Any) -> Any:
        if _asking:
            _asking[0]["started"] = True
        return original(*args, **kwargs)

    return fetch


def _hook_torchvision() -> None:
    modules = [
        m
        for name, m in list(sys.modules.items())
        if name.startswith("torchvision.datasets") and m is not None
    ]
    utils = sys.modules.get("torchvision.datasets.utils")
    for name in _FETCHING:
        replace([utils, *modules], name, _wrap_fetch)
    for name in _ENTRIES:
        replace([utils, *modules], name, _asked(name, ""))
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__.startswith("torchvision.datasets")
    }
    for kind in kinds:
        for name in ("download", "_download"):
            if callable(vars(kind).get(name)):
                replace([kind], name, _asked(name, None))


def install() -> None:
    """Hook torch.hub, and torchvision's data sets once they are there."""
    import torch.hub

    replace([torch.hub], "download_url_to_file", _asked("download_url_to_file", ""))
    once_imported("torchvision.datasets", _hook_torchvision)
