"""Which first failure of a run on GPUs was the machine's: told by CUDA, NCCL or the driver, not by the script.

Words can be forged: a script may raise or print whatever it likes. So they are believed only of a run that held GPUs,
only as the end of the rank that failed first, and neither where the script raises them itself nor where the probe saw
another exception. Who forges them all the same gets the run made again elsewhere, as often as any failure of a machine,
and is then judged as having crashed: nobody is accepted by that, and no GPU is taken out of service. That is decided
by what is asked of each GPU before every run, where no script has a say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_failure import RankFailure, shown
from grader.model.run import Ending

# CUDA's and NCCL's own words; a driver's where it is asked by torch. Numbers are cudaError_t's.
_WORDS = re.compile(
    r"uncorrectable ECC error encountered"  # 214
    r"|uncorrectable NVLink error detected"  # 220
    r"|Invalid access of peer GPU memory over nvlink or a hardware error"  # 721
    r"|hardware stack error"  # 714
    r"|CUDA-capable device\(s\) is/are busy or unavailable"  # 46
    r"|exclusive-thread device already in use"  # 54
    r"|system not yet initialized"  # 802, the fabric manager
    r"|system has unsupported display driver / cuda driver combination"  # 803
    r"|forward compatibility was attempted on non supported HW"  # 804
    r"|CUDA driver version is insufficient"  # 35
    r"|driver on your system is too old"
    r"|no kernel image is available for execution on the device"  # 209
    r"|the provided PTX was compiled with an unsupported toolchain"  # 222
    r"|CUDA error: unknown error"  # 999
    r"|CUDA unknown error"
    r"|Found no NVIDIA driver"
    r"|GPU is lost"  # NVML
    r"|Driver/library version mismatch"  # NVML
    r"|ncclSystemError"
    r"|unhandled system error"
)
# These a script brings about with one line of its own, too.
_NO_DEVICE = re.compile(r"no CUDA-capable device is detected|No CUDA GPUs are available")
_MASK = "CUDA_VISIBLE_DEVICES"
# Exceptions that torch makes of what its libraries report, in Python and in C++.
_TYPES = frozenset(
    {
        "AcceleratorError",
        "AssertionError",
        "DistBackendError",
        "RuntimeError",
        "c10::AcceleratorError",
        "c10::DistBackendError",
        "c10::Error",
    }
)


@dataclass(frozen=True, slots=True)
class MachineFault:
    """What a GPU or its driver said.

    Attributes:
        rank: that failed first; gpu: UUID of its device, "" unknown.
        words: one short line.
    """

    rank: int
    gpu: str
    words: str

    @property
    def device(self) -> str:
        """The GPU in a sentence."""
        return f"the GPU of rank {self.rank}" + (f" ({self.gpu})" if self.gpu else "")


def machine_fault(run: FailedRun) -> MachineFault | None:
    """The fault of the machine that ended a run, None where there is none or nobody believes it."""
    record, cause = run.evidence.record, run.cause
    gpus = _leased(record.environment.get("lease"))
    if not gpus or cause is None or record.ending is not Ending.CRASHED or cause.type not in _TYPES:
        return None
    found = _WORDS.search(cause.message) or (None if _masks(run) else _NO_DEVICE.search(cause.message))
    if found is None or _own_words(run, cause):
        return None
    local = cause.rank % run.evidence.facts.nproc_per_node
    line = next((one for one in cause.message.splitlines() if found[0] in one), found[0])
    return MachineFault(cause.rank, gpus[local] if local < len(gpus) else "", shown(line))


def _leased(lease: object) -> list[str]:
    gpus = lease.get("gpus") if isinstance(lease, dict) else None
    return [gpu for gpu in gpus if isinstance(gpu, str)] if isinstance(gpus, list) else []


def _masks(run: FailedRun) -> bool:
    return any(_MASK in file.text for file in run.evidence.script.submission.files)


def _own_words(run: FailedRun, cause: RankFailure) -> bool:
    """Whether the script said so itself: by a `raise`, or on standard error beside another exception."""
    written = run.evidence.record.ranks[cause.rank].failure
    inner = written.frames[0] if written is not None and written.frames else None
    line = (
        run.evidence.script.line(inner.path, inner.line) if inner is not None and inner.in_submission else ""
    )
    if line.lstrip().startswith("raise"):
        return True
    if cause.exit_code is None or cause.exit_code < 0:
        return False  # ended from C++, where no exception reaches Python
    told = next(iter(run.evidence.rank(cause.rank).events("exception")), None)
    message = told.fields.get("message") if told is not None else None
    return not isinstance(message, str) or shown(message) != cause.words
