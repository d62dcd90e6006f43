"""The phrases that explanations look for still stand in the installed CUDA, NCCL and torch: a new lock loses none.

Explanations of what only GPUs show can be tested here with words alone. So the words are looked for where they come
from: as bytes in the very libraries that print them.
"""

from __future__ import annotations

import mmap
import re
from functools import cache
from pathlib import Path

import pytest

from grader.checks.diagnoses import (
    cpu_tensor_with_nccl,
    cuda_in_fork,
    device_assert,
    duplicate_device,
    illegal_access,
    no_gpu,
)
from grader.checks.run.endings import machine_faults

torch = pytest.importorskip("torch")

TORCH = Path(torch.__file__).parent
PACKAGES = TORCH.parent
NCCL, CUDART = "nvidia/nccl/lib/libnccl.so.2", "nvidia/cu*/lib/libcudart.so.*"
C10, TORCH_CUDA, TORCH_CPU = (f"torch/lib/lib{name}.so" for name in ("c10_cuda", "torch_cuda", "torch_cpu"))
WITH_CUDA = bool(torch.version.cuda)

PHRASES = {
    "Multiple Ranks are using the same GPU": NCCL,
    "unhandled system error": NCCL,
    "Cuda failure %d '%s'": NCCL,
    "uncorrectable ECC error encountered": CUDART,
    "uncorrectable NVLink error detected": CUDART,
    "Invalid access of peer GPU memory over nvlink or a hardware error": CUDART,
    "hardware stack error": CUDART,
    "CUDA-capable device(s) is/are busy or unavailable": CUDART,
    "exclusive-thread device already in use": CUDART,
    "system not yet initialized": CUDART,
    "system has unsupported display driver / cuda driver combination": CUDART,
    "forward compatibility was attempted on non supported HW": CUDART,
    "CUDA driver version is insufficient": CUDART,
    "no kernel image is available for execution on the device": CUDART,
    "the provided PTX was compiled with an unsupported toolchain": CUDART,
    "unknown error": CUDART,
    "no CUDA-capable device is detected": CUDART,
    "device-side assert triggered": CUDART,
    "an illegal memory access was encountered": CUDART,
    "misaligned address": CUDART,
    "an illegal instruction was encountered": CUDART,
    "unspecified launch failure": CUDART,
    "invalid device ordinal": CUDART,
    "out of memory": CUDART,
    "driver on your system is too old": C10,
    "CUDA unknown error": C10,
    "Found no NVIDIA driver": C10,
    "No CUDA GPUs are available": C10,
    "CUDA out of memory": C10,
    "CUDA error: ": TORCH_CUDA,
    "CUBLAS_STATUS_ALLOC_FAILED": TORCH_CUDA,
    "ncclSystemError": TORCH_CUDA,
    "ProcessGroupNCCL is only supported with GPUs": TORCH_CUDA,
    "Tensors must be CUDA and dense": TORCH_CUDA,
    "Watchdog caught collective operation timeout": TORCH_CUDA,
    " milliseconds before timing out": TORCH_CUDA,
    "WorkNCCL(": TORCH_CUDA,
    "SeqNum=": TORCH_CUDA,
    ", OpType=": TORCH_CUDA,
    ", NumelIn=": TORCH_CUDA,
    ", NumelOut=": TORCH_CUDA,
    ", Timeout(ms)=": TORCH_CUDA,
    "No backend type associated with device type": TORCH_CPU,
    "Torch not compiled with CUDA enabled": "torch/cuda/__init__.py",
    "Invalid device id": "torch/cuda/__init__.py",
    "Cannot re-initialize CUDA in forked subprocess": "torch/cuda/__init__.py",
}
# Said by a driver's own library, by older versions, or put together from pieces.
ELSEWHERE = {
    "GPU is lost",
    "Driver/library version mismatch",
    "Duplicate GPU detected",
    "CUDA error: unknown error",
    "torch.cuda.is_available() is False",
    "module 'torch._C' has no attribute '_cuda_init'",
    "No backend type associated with device type cpu",
    "ProcessGroupNCCL only supports CUDA",
}
PATTERNS = {
    "cpu_tensor_with_nccl": cpu_tensor_with_nccl._WORDS,
    "cuda_in_fork": cuda_in_fork._WORDS,
    "device_assert": device_assert._WORDS,
    "duplicate_device": duplicate_device._WORDS,
    "illegal_access": illegal_access._WORDS,
    "no_gpu": no_gpu._WORDS,
    "machine_faults": machine_faults._WORDS,
    "machine_faults, no device": machine_faults._NO_DEVICE,
}


@cache
def _content(pattern: str) -> mmap.mmap:
    found = sorted(PACKAGES.glob(pattern))
    assert found, f"{pattern} is not installed beside torch {torch.__version__}"
    with found[0].open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.skipif(not WITH_CUDA, reason="this torch is built without CUDA")
@pytest.mark.parametrize("phrase", PHRASES)
def test_the_library_that_says_it_still_says_it_so(phrase: str) -> None:
    assert _content(PHRASES[phrase]).find(phrase.encode()) >= 0, (
        f"{PHRASES[phrase]} of torch {torch.__version__} has no “{phrase}”: see what it says now"
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_no_explanation_looks_for_words_that_are_not_looked_up_here(name: str) -> None:
    for alternative in PATTERNS[name].pattern.split("|"):
        assert any(re.search(alternative, known) for known in (*PHRASES, *ELSEWHERE)), alternative
