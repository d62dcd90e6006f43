"""The GPUs of this host as NVIDIA's management library tells them: names, memory, neighbourhood, health.

Starts no CUDA context, changes no setting, resets nothing, and never raises for what a driver does or lacks. Where the
driver hangs, so does this: as a program it says in JSON what it found, and `driver_query` knows how long to wait.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pynvml

from grader.run.devices.hardware import Gpu

_PCI_DEVICES = Path("/sys/bus/pci/devices")
_AMD_DRIVER = Path("/sys/class/kfd")
_ANSWERS = (pynvml.NVMLError, OSError, ValueError, UnicodeDecodeError)
"""What a call may end with that the installed driver does not know, or not for this model."""


_ACTIONS = {
    1: "reset the GPU",
    2: "restart the host",
    3: "end peer-to-peer use",
    4: "empty and reset the GPU",
}
"""nvmlDeviceGpuRecoveryAction_t, 0 being none."""


def read_gpus() -> tuple[tuple[Gpu, ...], str]:
    """All GPUs by index, unfit ones with the reason, and why there is none (or "")."""
    try:
        pynvml.nvmlInit()
    except _ANSWERS as error:
        return (), _no_driver(error)
    try:
        num = pynvml.nvmlDeviceGetCount()
        handles = [_handle(index) for index in range(num)]
        driver, cuda = _ask(pynvml.nvmlSystemGetDriverVersion) or "", _cuda_version()
        gpus = [
            replace(_read(index, handle), driver=driver, cuda=cuda) for index, handle in enumerate(handles)
        ]
        gpus = [replace(gpu, distances=_distances(gpu, gpus, handles)) for gpu in gpus]
    except _ANSWERS as error:
        return (), f"the NVIDIA driver does not answer: {error}"
    finally:
        with contextlib.suppress(*_ANSWERS):
            pynvml.nvmlShutdown()
    if not gpus:
        return (), "the NVIDIA driver is loaded, but shows no GPU"
    return _visible(gpus, os.environ.get("CUDA_VISIBLE_DEVICES")), ""


def _no_driver(error: Exception) -> str:
    if isinstance(error, pynvml.NVMLError_LibraryNotFound | OSError):
        if num := _num_cards():
            cards = "cards are" if num > 1 else "card is"
            return f"{num} NVIDIA {cards} in here, but no driver: its library libnvidia-ml.so.1 is missing"
        if _AMD_DRIVER.exists():
            return "AMD's GPUs (ROCm) can't be used: the tasks' gpu profiles need CUDA and NCCL"
        return "no NVIDIA driver: its library libnvidia-ml.so.1 is not here"
    if isinstance(error, pynvml.NVMLError_LibRmVersionMismatch):
        return "the NVIDIA driver was updated under its library (version mismatch): restart this host"
    if isinstance(error, pynvml.NVMLError_DriverNotLoaded):
        return "the NVIDIA driver's library is here, but the driver is not loaded"
    return f"the NVIDIA driver can't be asked: {error}"


def _num_cards() -> int:
    """NVIDIA's display and compute controllers on the PCI bus, whether a driver knows them or not."""
    num = 0
    for device in _PCI_DEVICES.glob("*"):
        with contextlib.suppress(OSError):
            # Class 0x03 is a display controller, 0x0302 among them what has no connector.
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
            num += vendor == "0x10de" and kind.startswith("0x03")
    return num


def _cuda_version() -> str:
    # The second form tells of the libcuda that programs would really load, which a compatibility package may bring.
    version = _ask(pynvml.nvmlSystemGetCudaDriverVersion_v2) or _ask(pynvml.nvmlSystemGetCudaDriverVersion)
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _handle(index: int) -> Any:
    """NVML's handle, or the error that stands in its place."""
    try:
        return pynvml.nvmlDeviceGetHandleByIndex(index)
    except _ANSWERS as error:
        return error


def _read(index: int, handle: Any) -> Gpu:
    if isinstance(handle, Exception):
        return Gpu(f"index {index}", index, unfit=f"it can't be opened: {handle}")
    try:
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        name = pynvml.nvmlDeviceGetName(handle)
        memory_bytes = _memory_bytes(handle)
    except _ANSWERS as error:
        # A lost GPU answers nothing; its UUID may still be known to some drivers.
        uuid = _ask(pynvml.nvmlDeviceGetUUID, handle) or f"index {index}"
        return Gpu(uuid, index, unfit=f"it does not answer: {error}")
    notes = []
    if _ask(pynvml.nvmlDeviceGetPersistenceMode, handle) == pynvml.NVML_FEATURE_DISABLED:
        notes.append("persistence mode is off: the first use of each attempt waits for the driver")
    processes = _ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
    return Gpu(
        uuid,
        index,
        name,
        memory_bytes,
        _numa_node(handle),
        unfit="; ".join(_complaints(handle)),
        notes=tuple(notes),
        num_processes=len(processes),
        processes=tuple(_process_name(one.pid) for one in processes),
        used_bytes=_used_bytes(handle),
        compute_capability=".".join(map(str, _ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle) or ())),
    )


def _memory_bytes(handle: Any) -> int:
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError_NotSupported:
        # Models that share the host's memory have none of their own to tell.
        return 0


def _used_bytes(handle: Any) -> int:
    # The older form counts what the driver keeps for itself as used, hundreds of MiB on an idle GPU.
    memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    return 0 if memory is None else int(memory.used)


def _process_name(pid: int) -> str:
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()})"
    except OSError:
        # Of another container, whose numbers mean nothing here.
        return f"process {pid}"


def _ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """An answer, or None where the driver or the model has none."""
    try:
        return question(*arguments)
    except _ANSWERS:
        return None


def _complaints(handle: Any) -> Iterator[str]:
    """Why a GPU that answers must not be handed out."""
    mig = _ask(pynvml.nvmlDeviceGetMigMode, handle)
    if mig is not None and mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
        yield f"MIG is on ({_num_slices(handle)} slices), and NCCL can't join its slices: turn MIG off to use it here"
    errors = _ask(
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    if errors:
        yield f"{errors} uncorrected memory errors since its last reset"
    remapped = _ask(pynvml.nvmlDeviceGetRemappedRows, handle)
    if remapped is not None and remapped[3]:
        yield "it ran out of spare memory rows: it has to be replaced"
    elif remapped is not None and remapped[2]:
        yield "memory rows wait to be remapped: reset it"
    if _ask(pynvml.nvmlDeviceGetRetiredPagesPendingStatus, handle) == pynvml.NVML_FEATURE_ENABLED:
        yield "memory pages wait to be retired: reset it"
    if action := _recovery(handle):
        yield f"the driver asks for recovery ({action}) after an error: see Xid in the kernel's log"
    if _ask(pynvml.nvmlDeviceGetComputeMode, handle) == pynvml.NVML_COMPUTEMODE_PROHIBITED:
        yield "its compute mode forbids CUDA"


def _num_slices(handle: Any) -> int:
    most = _ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    return sum(
        _ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place) is not None for place in range(most)
    )


def _recovery(handle: Any) -> str:
    """What the driver wants done before the GPU is used again, "" where nothing; known to drivers from 560 on."""
    field = getattr(pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    answer = None if field is None else _ask(pynvml.nvmlDeviceGetFieldValues, handle, [field])
    if answer is None or answer[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return ""
    code = int(answer[0].value.uiVal)
    return _ACTIONS.get(code, f"action {code}") if code else ""


def _numa_node(handle: Any) -> int | None:
    pci = _ask(pynvml.nvmlDeviceGetPciInfo, handle)
    if pci is None:
        return None
    # NVML writes the domain with eight digits, the kernel with four.
    domain, _colon, rest = str(pci.busId).lower().partition(":")
    try:
        node = int((_PCI_DEVICES / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    # The firmware of a host with one node says -1.
    return node if node >= 0 else None


def _distances(gpu: Gpu, gpus: list[Gpu], handles: list[Any]) -> tuple[tuple[str, int], ...]:
    if isinstance(handles[gpu.index], Exception):
        return ()
    found = []
    for other in gpus:
        if other.index != gpu.index and not isinstance(handles[other.index], Exception):
            steps = _steps(handles[gpu.index], handles[other.index])
            if steps is not None:
                found.append((other.uuid, steps))
    return tuple(found)


def _steps(one: Any, other: Any) -> int | None:
    if (
        _ask(pynvml.nvmlDeviceGetP2PStatus, one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
        == pynvml.NVML_P2P_STATUS_OK
    ):
        return 0
    level = _ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, one, other)
    # 0 internal, 10 one switch, 20 several, 30 one host bridge, 40 one node, 50 across sockets.
    return None if level is None else int(level) // 10 + 1


def _visible(gpus: list[Gpu], chosen: str | None) -> tuple[Gpu, ...]:
    """Respect what a scheduler or a person left of the host to this process; numbers are NVML's."""
    if chosen is None:
        return tuple(gpus)
    names = [name.strip() for name in chosen.split(",")]
    reason = f"CUDA_VISIBLE_DEVICES={chosen} leaves it to others"
    return tuple(
        gpu
        if any(
            name and (name == str(gpu.index) or (name[0] == "G" and gpu.uuid.startswith(name)))
            for name in names
        )
        else replace(gpu, unfit=gpu.unfit or reason)
        for gpu in gpus
    )


def main() -> None:
    """Print what there is: `gpus` and `no_gpus`."""
    gpus, no_gpus = read_gpus()
    print(json.dumps({"gpus": [asdict(gpu) for gpu in gpus], "no_gpus": no_gpus}))


if __name__ == "__main__":
    main()
