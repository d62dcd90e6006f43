"""How an engine is asked for GPUs, from what it says of itself, and what it shows that would keep them away."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from grader.run.engine import gpu_access
from grader.run.engine.gpu_access import GpuAccess, device_requests, why_no_gpus
from grader.settings import settings
from grader.settings.schema import Settings

# As `docker info` answers: an engine of Debian 12, one with NVIDIA's runtime, CDI of 25.0, and CDI of 28.2 and newer.
BARE: dict[str, Any] = {"Runtimes": {"runc": {"path": "runc"}}, "CgroupDriver": "systemd"}
HOOK = BARE | {"Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}}}
CDI_25 = BARE | {"CDISpecDirs": ["/etc/cdi", "/var/run/cdi"]}
EMPTY_28 = CDI_25 | {"DiscoveredDevices": None}
CDI_28 = CDI_25 | {
    "DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={name}"} for name in ("0", "GPU-a")]
}


def choose(monkeypatch: pytest.MonkeyPatch, value: Literal["auto", "hook", "cdi"]) -> None:
    changed = Settings(docker_gpus=value)
    monkeypatch.setattr(gpu_access, "settings", lambda: changed)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (BARE, GpuAccess.HOOK),
        (HOOK, GpuAccess.HOOK),
        (CDI_25, GpuAccess.CDI),
        (EMPTY_28, GpuAccess.HOOK),
        (CDI_28, GpuAccess.CDI),
        (HOOK | CDI_28 | {"Runtimes": HOOK["Runtimes"]}, GpuAccess.HOOK),
    ],
)
def test_an_engine_is_asked_in_the_way_that_it_is_set_up_for(
    engine: dict[str, Any], expected: GpuAccess
) -> None:
    assert settings().docker_gpus == "auto"
    assert gpu_access.gpu_access(engine) is expected


def test_who_runs_the_site_may_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "cdi")
    assert gpu_access.gpu_access(HOOK) is GpuAccess.CDI
    choose(monkeypatch, "hook")
    assert gpu_access.gpu_access(CDI_28) is GpuAccess.HOOK


def test_what_is_asked_for_names_each_gpu() -> None:
    (request,) = device_requests(("GPU-a", "GPU-b"), GpuAccess.CDI)
    assert (request.driver, request.device_ids) == ("cdi", ["nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"])
    (request,) = device_requests(("GPU-a",), GpuAccess.HOOK)
    assert (request.driver, request.device_ids) == ("", ["GPU-a"])
    assert device_requests((), GpuAccess.CDI) == []


def test_what_keeps_gpus_from_containers_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_access, "DEVICE_LINKS", tmp_path)
    assert "neither" in why_no_gpus(BARE, ["GPU-a"])[0]
    found, remedy = why_no_gpus(CDI_28, ["GPU-a", "GPU-b"])
    assert "GPU-b" in found
    assert "GPU-a" not in found
    assert "uuid" in remedy
    assert why_no_gpus(CDI_28, ["GPU-a"]) == ("", "")
    assert "daemon-reload" in why_no_gpus(HOOK, ["GPU-a"])[0]
    assert why_no_gpus(HOOK | {"CgroupDriver": "cgroupfs"}, ["GPU-a"]) == ("", "")
    (tmp_path / "195:0").symlink_to("../nvidia0")
    assert why_no_gpus(HOOK, ["GPU-a"]) == ("", "")
