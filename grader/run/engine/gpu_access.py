"""How an engine is asked for GPUs: through NVIDIA's hook, or by their names in the Container Device Interface (CDI).

Both ways end in the same devices, by UUID. The hook (`nvidia-container-runtime-hook`, of the NVIDIA Container Toolkit)
is called by the engine when a container starts, and writes devices into it behind the engine's back; with CDI the
engine itself reads from a file what a device is made of, and knows what it has given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest

from grader.settings import settings

_CDI_KIND = "nvidia.com/gpu"
DEVICE_LINKS = Path("/dev/char")
"""Links to devices by their numbers; a container that we run in ourselves has no such folder."""


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


def why_no_gpus(engine: Mapping[str, Any], gpus: Sequence[str]) -> tuple[str, str]:
    """What an engine shows that would keep GPUs from its containers, and what to do about it; ("", "") if nothing.

    Only a container that was started knows for certain: `grader doctor --gpu` starts one.

    Args:
        engine: what it says of itself (`docker info`); gpus: UUIDs of those that are handed out.
    """
    if gpu_access(engine) is GpuAccess.CDI:
        if "DiscoveredDevices" in engine and (missing := set(gpus) - set(cdi_gpus(engine))):
            return (
                f"no CDI file of its engine describes {', '.join(sorted(missing))}",
                "`nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml`",
            )
        return "", ""
    if "nvidia" not in (engine.get("Runtimes") or {}):
        return (
            "its engine is set up for neither NVIDIA's runtime nor CDI",
            "install the NVIDIA Container Toolkit, `nvidia-ctk runtime configure --runtime=docker`, restart it",
        )
    # Where systemd keeps the cgroups, each reload of it writes anew which devices a container may open, and it finds
    # the devices by these links: https://github.com/NVIDIA/nvidia-container-toolkit/issues/1397.
    if engine.get("CgroupDriver") == "systemd" and DEVICE_LINKS.is_dir() and not _linked():
        return (
            "`systemctl daemon-reload` takes the GPUs away from containers that run",
            "`nvidia-ctk system create-dev-char-symlinks --create-all` at each start of the host, or CDI",
        )
    return "", ""


def _linked() -> bool:
    return any("nvidia" in str(link.readlink()) for link in DEVICE_LINKS.iterdir() if link.is_symlink())


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
