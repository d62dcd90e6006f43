"""What a build of PyTorch can run on: the CUDA it was made with, and the generations of GPUs that it has kernels for.

Pure text and numbers. Who has that torch, this environment or an image, is found out by `grader.run.torch_builds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from grader.run.devices.hardware import Gpu

ASK = "import torch; print(torch.version.cuda or 'none', torch._C._cuda_getArchFlags() if torch.version.cuda else '')"
"""Prints what `parse` reads; makes no context. torch.cuda.get_arch_list() gives these flags only beside a device."""

_OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
"""By CUDA's major version, within which minor ones are compatible: "Minor Version Compatibility", table 1, of NVIDIA's
CUDA Compatibility guide, https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html."""


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """One build of PyTorch.

    Attributes:
        cuda: version it was made with (`13.2`), "" for one without CUDA.
        architectures: of its kernels (`sm_90`), and `compute_120` for code that newer GPUs compile for themselves;
            () where unknown.
    """

    cuda: str
    architectures: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `13.2 sm_75 sm_80`; None for anything else."""
        cuda, *architectures = text.split() or [""]
        if cuda == "none":
            return cls("")
        known = all(part.startswith(("sm_", "compute_")) for part in architectures)
        return cls(cuda, tuple(architectures)) if known and cuda.partition(".")[0].isdigit() else None

    def __str__(self) -> str:
        return " ".join((self.cuda or "none", *self.architectures))

    def refusal(self, gpu: Gpu) -> str:
        """Why it can't run on this GPU, "" where it can or nobody can tell."""
        if not self.cuda:
            return "the PyTorch that would use it is built without CUDA"
        needed, served = int(self.cuda.partition(".")[0]), gpu.cuda.partition(".")[0]
        if served.isdigit() and int(served) < needed:
            oldest = _OLDEST_DRIVER.get(needed)
            newer = f"{oldest} or newer" if oldest else f"one for CUDA {needed}"
            return (
                f"driver {gpu.driver} serves CUDA {gpu.cuda} at most, and PyTorch is built for CUDA {self.cuda}: "
                f"install driver {newer}"
            )
        if gpu.compute_capability and self.architectures and not self._has_kernels(gpu.compute_capability):
            return (
                f"PyTorch has no kernels for its generation (compute capability {gpu.compute_capability}; "
                f"there are {', '.join(self.architectures)})"
            )
        return ""

    def _has_kernels(self, compute_capability: str) -> bool:
        major, _dot, minor = compute_capability.partition(".")
        wanted = int(major), int(minor)
        for name in self.architectures:
            kind, _line, number = name.partition("_")
            # `sm_90a`, with a letter, runs on exactly that.
            digits = number.rstrip("af")
            has = int(digits[:-1]), int(digits[-1])
            newer = kind == "compute" or has[0] == wanted[0]
            if has == wanted or (digits == number and newer and has <= wanted):
                return True
        return False
