"""How an engine is asked for GPUs: through NVIDIA's hook, or by their names in the Container Device Interface (CDI).

Both ways end in the same devices, by UUID. The hook (`nvidia-container-runtime-hook`, of the NVIDIA Container Toolkit)
is called by the engine when a container starts, and writes devices into it behind the engine's back; with CDI the
engine itself reads from a file what a device is made of, and knows what it has given.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from docker.types import DeviceRequest

from grader.settings import settings

_CDI_KIND = "nvidia.com/gpu"


class GpuAccess(StrEnum):
    """One of the two ways."""

    HOOK = "hook"
    CDI = "cdi"


def gpu_access(engine: Mapping[str, Any]) -> GpuAccess:
    """The way that the settings name; else NVIDIA's hook wherever an engine is set up for it, or has no CDI.

    Args:
        engine: what the engine says of itself (`docker info`).
    """
    if settings().docker_gpus != "auto":
        return GpuAccess(settings().docker_gpus)
    if "nvidia" in (engine.get("Runtimes") or {}):
        return GpuAccess.HOOK
    # From 28.2 on an engine looks for CDI files by default, and lists what they describe; before, who wanted CDI named
    # the folders. Nobody but the engine knows what they hold: they are the folders of its host.
    if "DiscoveredDevices" in engine:
        return GpuAccess.CDI if cdi_gpus(engine) else GpuAccess.HOOK
    return GpuAccess.CDI if engine.get("CDISpecDirs") else GpuAccess.HOOK


def cdi_gpus(engine: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the NVIDIA GPUs that an engine of version 28.2 or newer has found in its CDI files."""
    names = [str(device.get("ID", "")) for device in engine.get("DiscoveredDevices") or ()]
    return tuple(name.split("=", 1)[1] for name in names if name.startswith(f"{_CDI_KIND}="))


def device_requests(gpus: tuple[str, ...], how: GpuAccess) -> list[DeviceRequest]:
    """What a container is made with so that it has these GPUs and no others; none: no request at all.

    Args:
        gpus: UUIDs; how: see `gpu_access`.
    """
    if not gpus:
        return []
    if how is GpuAccess.CDI:
        return [DeviceRequest(driver="cdi", device_ids=[f"{_CDI_KIND}={uuid}" for uuid in gpus])]
    return [DeviceRequest(device_ids=list(gpus), capabilities=[["gpu", "compute", "utility"]])]
