"""Read weights that a stranger wrote: checked before memory is given, tensors only.

Used in a child of the scorer that may be killed without loss. Never unpickles anything but tensors and never trusts a
size that a file claims about itself.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.evaluate.files.plain_files import RefusedError, read_plain_file
from grader.evaluate.files.plain_tensors import plain_tensors, shown
from grader.model.evaluation import ArtifactProblem

if TYPE_CHECKING:
    from torch import Tensor

ARTIFACTS = ("model.pt", "model.safetensors")
MAX_BYTES = 512 << 20
MAX_PICKLE_BYTES = 8 << 20
MAX_HEADER_BYTES = 8 << 20
MAX_MEMBERS = 20_000
MAX_SUMS = 512
DOUBLED = 61
"""Every so many-th element counts twice, as the probe counts (`grader.probe.models.fingerprints`)."""
_WRAPPERS = ("module.", "_orig_mod.", "_forward_module.")
_MAX_WRAPPERS = 8
_SAVE = "`torch.save(model.module.state_dict(), path)`"


@dataclass(frozen=True, slots=True)
class Weights:
    """Tensors by name without prefix, and where they came from."""

    artifact: str
    size: int
    prefix: str
    tensors: dict[str, Tensor]


def load_weights(folder: Path, expected: dict[str, Tensor]) -> Weights:
    """The run's weights, checked against the task's network.

    Args:
        folder: the output folder.
        expected: state dict of a freshly built network: names, shapes and kinds of numbers.

    Raises:
        RefusedError: there are none, or they are not this network's weights.
    """
    for name in ARTIFACTS:
        content = read_plain_file(folder, name, MAX_BYTES)
        if content is not None:
            break
    else:
        raise RefusedError(ArtifactProblem.MISSING, _missing(folder))
    try:
        return _fitting(load_tensors(content, name), name, len(content), expected)
    except RefusedError as refused:
        raise RefusedError(refused.problem, refused.detail, name, len(content)) from None


def load_checkpoint(content: bytes, name: str, expected: dict[str, Tensor]) -> Weights:
    """The network's weights of any file: its state dict, or a dictionary in which that lies beside other things.

    Raises:
        RefusedError: it holds none.
    """
    loaded, first = _loaded(content, name), next(iter(expected), "")
    for value in loaded.values() if isinstance(loaded, dict) else ():
        if isinstance(value, dict) and any(isinstance(key, str) and key.endswith(first) for key in value):
            loaded = value
            break
    return _fitting(plain_tensors(loaded, name), name, len(content), expected)


def load_tensors(content: bytes, name: str) -> dict[str, Tensor]:
    """Plain tensors by name, of a file written by `torch.save` or by safetensors, whichever its name says.

    Raises:
        RefusedError: it holds anything else.
    """
    return plain_tensors(_loaded(content, name), name)


def fingerprint(tensors: dict[str, Tensor]) -> tuple[float, ...]:
    """One float64 sum per floating-point tensor, by sorted name, at most 512: comparable to the probe's SAVE event."""
    import torch

    floats = [tensors[name] for name in sorted(tensors) if tensors[name].is_floating_point()]
    # Summed as the probe sums: the order of additions decides the last bits.
    return tuple(float(tensor.sum(dtype=torch.float64).item()) for tensor in floats[:MAX_SUMS])


def fingerprints(tensors: dict[str, Tensor]) -> dict[str, float]:
    """By name, of floating-point tensors, at most 512: comparable to the probe's fingerprints of single parameters."""
    import torch

    floats = [name for name in sorted(tensors) if tensors[name].is_floating_point()][:MAX_SUMS]
    flat = {name: tensors[name].reshape(-1) for name in floats}
    return {
        name: float((values.sum(dtype=torch.float64) + values[::DOUBLED].sum(dtype=torch.float64)).item())
        for name, values in flat.items()
    }


def not_finite(tensors: dict[str, Tensor]) -> list[str]:
    """Names of tensors that hold an infinity or a NaN, sorted."""
    import torch

    return sorted(
        n for n, t in tensors.items() if t.is_floating_point() and not bool(torch.isfinite(t).all())
    )


def _missing(folder: Path) -> str:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))[:5]
    except OSError:
        names = []
    there = (
        f" The folder holds {', '.join(re.sub(r'[^ -~]', '?', n)[:60] for n in names)}."
        if names
        else " The folder is empty."
    )
    return f"The run left no model.pt and no model.safetensors in $OUTPUT_DIR.{there}"


def _refuse(text: str) -> RefusedError:
    return RefusedError(ArtifactProblem.REFUSED, text)


def _mismatch(text: str) -> RefusedError:
    return RefusedError(ArtifactProblem.MISMATCH, text)


def _loaded(content: bytes, name: str) -> Any:
    return _safetensors(content, name) if name.endswith(".safetensors") else _torch_file(content, name)


def _fitting(tensors: dict[str, Tensor], name: str, size: int, expected: dict[str, Tensor]) -> Weights:
    prefix, tensors = _strip(tensors, expected)
    _compare(tensors, expected, name)
    return Weights(name, size, prefix, tensors)


def _safetensors(content: bytes, name: str) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load

    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    if not 2 <= length <= min(MAX_HEADER_BYTES, len(content) - 8):
        raise _refuse(f"{name} is damaged: its header says it is {length:,} bytes long.")
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise _refuse(f"{name} is damaged: {_one_line(error)}.") from None


def _torch_file(content: bytes, name: str) -> Any:
    import pickle

    import torch

    _check_archive(content, name)
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # torch names the class, in words that differ between versions.
        found = re.search(r"(?:GLOBAL|global:?)\s+`?([\w.]+\.\w+)", str(error))
        what = f" (`{found[1]}`)" if found else ""
        raise _refuse(
            f"{name} holds Python objects besides tensors{what}; only tensors are loaded. Save the state dict, "
            f"not the model: {_SAVE}."
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  torch's reader raises whatever a damaged file makes it stumble over
        raise _refuse(f"{name} cannot be read by torch.load: {_one_line(error)}.") from None


def _check_archive(content: bytes, name: str) -> None:
    """Refuse what `torch.save` does not write: anything but a zip archive of stored members that fit the file."""
    if not content:
        raise _refuse(
            f"{name} is empty: the script ended before the file was written, or opened it without saving."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  a crafted directory can make the reader stumble in many ways
        raise _refuse(
            f"{name} was not written by `torch.save` of torch 1.6 or newer, or it was cut short. Save with {_SAVE}, "
            "on one rank."
        ) from None
    if len(members) > MAX_MEMBERS:
        raise _refuse(f"{name} has {len(members):,} members; at most {MAX_MEMBERS:,} are read.")
    if any(m.compress_type != zipfile.ZIP_STORED for m in members):
        raise _refuse(f"{name} is a compressed archive; `torch.save` writes none. Save with {_SAVE}.")
    if sum(m.file_size for m in members) > len(content):
        raise _refuse(f"{name} claims to hold more than its own size.")
    if any(m.file_size > MAX_PICKLE_BYTES for m in members if m.filename.endswith(".pkl")):
        raise _refuse(f"{name} describes more objects than a state dict has.")


def _strip(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[str, dict[str, Tensor]]:
    """Take off what wrappers put before every name."""
    prefix = ""
    for _ in range(_MAX_WRAPPERS):
        if not tensors or tensors.keys() == expected.keys():
            break
        wrapper = next((w for w in _WRAPPERS if all(name.startswith(w) for name in tensors)), None)
        if wrapper is None:
            break
        prefix += wrapper
        tensors = {name.removeprefix(wrapper): tensor for name, tensor in tensors.items()}
    return prefix, tensors


def _compare(tensors: dict[str, Tensor], expected: dict[str, Tensor], name: str) -> None:
    missing = [n for n in expected if n not in tensors]
    extra = [n for n in tensors if n not in expected]
    if missing or extra:
        parts = []
        if missing:
            parts.append(f"{len(missing)} of {len(expected)} names are missing, such as `{missing[0]}`")
        if extra:
            parts.append(f"{len(extra)} are not the network's, such as `{shown(extra[0])}`")
        raise _mismatch(f"{name} does not fit the task's network: {'; '.join(parts)}.")
    for key, want in expected.items():
        got = tensors[key]
        if got.shape != want.shape:
            raise _mismatch(
                f"{name} does not fit the task's network: `{key}` has shape {tuple(got.shape)}, "
                f"the network's has {tuple(want.shape)}."
            )
        if got.is_floating_point() != want.is_floating_point():
            raise _mismatch(
                f"{name} does not fit the task's network: `{key}` is {got.dtype}, the network's {want.dtype}."
            )


def _one_line(error: BaseException) -> str:
    return shown(str(error).strip().split("\n", 1)[0].rstrip("."))[:200] or type(error).__name__
