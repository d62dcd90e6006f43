"""Which build of PyTorch runs what is graded: that of this environment, or that of an image. Makes no CUDA context.

An image says it in a label that it was built with; this environment's is read from its files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import mmap
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from grader.errors import InfraError
from grader.run.devices.torch_build import TorchBuild
from grader.run.image_context import recipe_path
from grader.run.images import TORCH_LABEL, image_name

_ENGINE_S = 5.0
_CUDA = re.compile(r"^cuda\b.*= '([\d.]+)'", re.MULTILINE)
_FLAGS = re.compile(rb"\0((?:(?:sm|compute)_\d+[af]? )*(?:sm|compute)_\d+[af]?)\0")
_LOCKED_CUDA = re.compile(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+\.\d+)", re.MULTILINE)


def torch_build(runtime: str) -> TorchBuild | None:
    """The build that runs submissions in this runtime; None where nobody can tell."""
    known: dict[str, Callable[[], TorchBuild | None]] = {
        "process": _installed,
        "docker": _of_image,
        "apptainer": _locked,
    }
    return known[runtime]() if runtime in known else None


@cache
def _installed() -> TorchBuild | None:
    # Without importing it, which takes seconds.
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    try:
        cuda = _CUDA.search((folder / "version.py").read_text(encoding="utf-8"))
        return TorchBuild(cuda[1] if cuda else "", _kernels(folder / "lib" / "libtorch_python.so"))
    except (OSError, ValueError):
        return None


def _kernels(library: Path) -> tuple[str, ...]:
    """What `torch._C._cuda_getArchFlags()` gives, a constant of this library; () where it stands elsewhere."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(b"\0sm_")
        while at >= 0:
            if flags := _FLAGS.match(content, at):
                return tuple(flags[1].decode().split())
            at = content.find(b"\0sm_", at + 1)
    return ()


def _of_image() -> TorchBuild | None:
    from docker.errors import ImageNotFound

    from grader.run.engine.client import connect, engine_errors

    with (
        contextlib.suppress(InfraError, ImageNotFound),
        contextlib.closing(connect(_ENGINE_S)) as client,
        engine_errors("The container engine did not show an image"),
    ):
        return TorchBuild.parse(client.images.get(image_name("train")).labels.get(TORCH_LABEL, ""))
    return None


def _locked() -> TorchBuild | None:
    """From the lock file that its image was made of; which kernels there are stands nowhere."""
    with contextlib.suppress(OSError):
        if found := _LOCKED_CUDA.search(recipe_path("torch.lock").read_text(encoding="utf-8")):
            return TorchBuild(found[1])
    return None
