"""Bring a stranger's tensors into the few kinds that everything behind can compute on, and say what the others are.

The one place where what `torch.load` hands out is looked at first: nearly every question about a tensor raises for some
kind of it, and whoever asks later (sums, comparisons, a task's own code) need not know which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grader.evaluate.files.plain_files import RefusedError
from grader.model.evaluation import ArtifactProblem

if TYPE_CHECKING:
    from torch import Tensor

KINDS = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"
)  # fmt: skip
"""What is read: all that networks are trained in, and that every operation of torch can compute on."""
MAX_BYTES = 1 << 30
"""Of all tensors as they are laid out in memory: views may repeat what a file holds once."""
MAX_NAME = 1_000
_SAVE = "`torch.save(model.module.state_dict(), path)`"


def plain_tensors(loaded: Any, name: str) -> dict[str, Tensor]:
    """Dense, contiguous CPU tensors of the kinds in `KINDS` by name.

    Args:
        loaded: what a file held; name: the file's.

    Raises:
        RefusedError: it is no dictionary of such tensors; the text has the first that is none, and its kind.
    """
    import torch

    if isinstance(loaded, torch.Tensor) or not isinstance(loaded, dict):
        raise _mismatch(f"{name} holds a {type(loaded).__name__}, not a state dict. Save with {_SAVE}.")
    odd = [
        key
        for key, value in loaded.items()
        if not isinstance(key, str) or not isinstance(value, torch.Tensor)
    ]
    if odd:
        keys = ", ".join(f"`{shown(key)}`" for key in list(loaded)[:6])
        raise _mismatch(
            f"{name} holds a dictionary with the keys {keys}; `{shown(odd[0])}` is no tensor. The file must be the "
            f"network's state dict itself: {_SAVE}."
        )
    found, size = {}, 0
    for key, value in loaded.items():
        if len(key) > MAX_NAME:
            raise _refused(
                f"{name} has a name of {len(key):,} letters, `{shown(key)[:40]}…`. Save with {_SAVE}."
            )
        if kind := _odd_kind(value):
            raise _refused(f"{name} holds `{shown(key)}` {kind}.")
        size += value.numel() * value.element_size()
        if size > MAX_BYTES:
            raise _refused(f"{name} unfolds to more than {MAX_BYTES:,} bytes of tensors.")
        found[key] = value.detach().contiguous()
    return found


def shown(key: object) -> str:
    """A stranger's word as printable text of bounded length; what is no text is named by its type."""
    return re.sub(r"[^ -~]", "?", key[:120] if isinstance(key, str) else f"a {type(key).__name__}")


def _odd_kind(value: Any) -> str:
    """How a tensor differs from a plain one and what to do about it, as the end of a sentence; "" for a plain one."""
    import torch

    try:
        kind, device = str(value.dtype).removeprefix("torch."), value.device.type
        if value.is_nested or value.layout is not torch.strided:
            layout = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
            return (
                f"as a tensor that is not dense ({layout}); save dense ones, such as with `tensor.to_dense()`"
            )
        if device != "cpu":
            return (
                f"on the device {device}, where there are no numbers to save; save weights that were computed"
            )
        if value.is_quantized:
            return f"as {kind}, which is quantized; save `tensor.dequantize()`"
        if type(value) not in {torch.Tensor, torch.nn.Parameter}:
            return f"as a {shown(type(value).__name__)}; save plain tensors"
        if kind not in KINDS:
            return f"as {kind}; what is read is {', '.join(KINDS)}. Save it as one of these: `tensor.to(torch.float32)`"
        # Whatever has no memory of its own says so here and not later.
        value.data_ptr(), value.untyped_storage().nbytes()
    except Exception as error:  # noqa: BLE001  what torch cannot tell about a tensor is no reason to fail
        return f"as a tensor that cannot be read ({type(error).__name__})"
    return ""


def _refused(text: str) -> RefusedError:
    return RefusedError(ArtifactProblem.REFUSED, text)


def _mismatch(text: str) -> RefusedError:
    return RefusedError(ArtifactProblem.MISMATCH, text)
