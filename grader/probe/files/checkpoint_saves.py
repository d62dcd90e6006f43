"""Checkpoints as they are written: where to, from which line, and a fingerprint of the weights inside.

torch writes files below Python, so that watching `open` would not see them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from grader.probe.files import opened_files
from grader.probe.hooks import code_locations
from grader.probe.hooks.imports import once_imported
from grader.probe.hooks.patches import outermost, replace
from grader.probe.models import trained_models
from grader.probe.models.fingerprints import count_filled, sums
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_SUMS = 512
_MAX_WRAPPERS = 8
"""One around the other; names of a million of them would keep a rank busy."""
_NAMES = ("model", "state_dict", "model_state_dict", "model_state", "net", "module", "weights")


def _tensors(value: Any, depth: int = 0) -> dict[str, Any]:
    """The tensors of a state dict, found at the top or one level down; empty where there is none."""
    from torch import Tensor, nn

    if isinstance(value, nn.Module):
        value = value.state_dict()
    if not isinstance(value, Mapping):
        return {}
    found = {key: one for key, one in value.items() if isinstance(key, str) and isinstance(one, Tensor)}
    if found or depth:
        return found
    for name in (*_NAMES, *(key for key in value if key not in _NAMES)):
        found = _tensors(value.get(name), depth + 1)
        if found:
            return found
    return {}


def common_prefix(names: list[str]) -> str:
    """The wrappers' prefix that every name carries: `module.`, `_orig_mod.` or both; "" where one lacks it."""
    prefix = ""
    for _ in range(_MAX_WRAPPERS if names else 0):
        for wrapper in ("module.", "_orig_mod."):
            if all(name.startswith(prefix + wrapper) for name in names):
                prefix += wrapper
                break
        else:
            break
    return prefix


def _write(api: str, state: Any, target: Any, started_s: float) -> None:
    seconds = writer.now() - started_s
    tensors = _tensors(state)
    prefix = common_prefix(list(tensors))
    floating = [tensors[name] for name in sorted(tensors) if tensors[name].is_floating_point()]
    saved = sums(floating[:_MAX_SUMS])
    counts = [tensor for key, tensor in tensors.items() if key.endswith("num_batches_tracked")]
    path = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", "")
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    name = name if isinstance(name, str) else os.fsdecode(name)
    shown, out = opened_files.shown(name) if name else ("", False)
    try:
        size = os.stat(name).st_size if name else None
    except OSError:
        size = None
    writer.write(
        events.SAVE,
        path=shown,
        out=out,
        site=code_locations.here(),
        api=api,
        prefix=prefix,
        num_tensors=len(tensors),
        sums=saved,
        bytes=size,
        seconds=round(seconds, 6),
        live=trained_models.trained_now(saved),
        untracked=bool(counts) and not count_filled(counts),
    )


def _torch_saved(_result: Any, started_s: float, obj: Any, f: Any, *_args: Any, **_kwargs: Any) -> None:
    _write("torch.save", obj, f, started_s)


def _file_saved(
    _result: Any, started_s: float, tensors: Any, filename: Any, *_args: Any, **_kwargs: Any
) -> None:
    _write("safetensors", tensors, filename, started_s)


def _model_saved(
    _result: Any, started_s: float, model: Any, filename: Any, *_args: Any, **_kwargs: Any
) -> None:
    _write("safetensors", model, filename, started_s)


def _distributed_saved(_result: Any, started_s: float, state_dict: Any, *_args: Any, **kwargs: Any) -> None:
    target = kwargs.get("checkpoint_id") or next((a for a in _args if isinstance(a, (str, os.PathLike))), "")
    _write("dcp", state_dict, target, started_s)


def _hook_safetensors() -> None:
    module = sys.modules.get("safetensors.torch")
    replace([module], "save_file", outermost("save", _file_saved))
    replace([module], "save_model", outermost("save", _model_saved))


def _hook_distributed() -> None:
    names = ("torch.distributed.checkpoint", "torch.distributed.checkpoint.state_dict_saver")
    replace([sys.modules.get(name) for name in names], "save", outermost("save", _distributed_saved))


def install() -> None:
    """Hook the functions that write checkpoints."""
    import torch

    replace([torch, torch.serialization], "save", outermost("save", _torch_saved))
    once_imported("safetensors.torch", _hook_safetensors)
    once_imported("torch.distributed.checkpoint", _hook_distributed)
