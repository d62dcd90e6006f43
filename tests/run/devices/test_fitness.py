"""Which of 8 GPUs are handed out as they fall ill, serve others or are missed; how a driver that hangs is borne."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from grader import cli
from grader.doctor import _devices
from grader.errors import InfraError
from grader.run.devices import driver_query, nvml
from grader.run.devices.driver_query import ask_driver
from grader.run.devices.hardware import Gpu
from grader.run.devices.leases import Devices
from grader.run.devices.need import Need
from grader.run.devices.torch_build import TorchBuild
from grader.run.host_devices import host_devices
from grader.run.torch_builds import torch_build
from grader.settings import settings
from tests.run.devices.stub_driver import StubDriver

EIGHT = "ok,ok,ok,ok,ok,ok,ok,ok"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> StubDriver:
    return StubDriver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(stub: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubDriver]:
    """The simulated driver is this process's, and the state folder its own."""
    for name, value in (stub.environment | {"GRADER_STATE_DIR": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(driver_query, "_query", driver_query._Query())
    settings.cache_clear()
    yield stub
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def devices(driver: StubDriver, tmp_path: Path) -> Devices:
    return Devices(tmp_path)


def unfit(devices: Devices) -> dict[str, str]:
    return {gpu.uuid[-1]: gpu.unfit for gpu in devices.inventory().gpus if gpu.unfit}


def test_eight_gpus_are_leased_by_who_needs_them(driver: StubDriver, devices: Devices) -> None:
    driver.shows(EIGHT)
    with (
        devices.lease(Need(60, 4, 0), timeout_s=0) as four,
        devices.lease(Need(60, 2, 0), timeout_s=0) as two,
    ):
        assert len({*four.gpus, *two.gpus}) == 6
        with pytest.raises(InfraError, match="did not come free"):
            devices.lease(Need(60, 3, 0), timeout_s=0)
        with devices.lease(Need(60, 2, 0), timeout_s=0) as rest:
            assert len({*four.gpus, *two.gpus, *rest.gpus}) == 8
    # Two are ill: six are left, and eight are refused with the reasons.
    driver.shows("ok,ecc,ok,ok,mig,ok,ok,ok")
    devices.lease(Need(60, 6, 0), timeout_s=0).release()
    with pytest.raises(
        InfraError, match=r"only 6 can .* GPU 1 \(GPU-b\): 3 uncorrected .* GPU 4 .* MIG is on"
    ):
        devices.lease(Need(60, 8, 0))


def test_a_gpu_that_others_use_is_unfit_until_they_have_gone(driver: StubDriver, devices: Devices) -> None:
    driver.shows("busy,full,consumer,ok")
    found = unfit(devices)
    assert set(found) == {"a", "b"}
    # Named where it is a process of this machine.
    assert f"without a lease: process {os.getpid()} (" in found["a"]
    assert "process 999999999" in found["a"]
    assert "others use 71680 MiB of its memory, and nobody holds it" in found["b"]
    with pytest.raises(InfraError, match="others compute on it without a lease"):
        devices.lease(Need(60, 3, 0))
    driver.shows("ok,ok,ok,ok")
    with devices.lease(Need(60, 2, 0), timeout_s=0) as lease:
        # What runs on leased GPUs is their holder's.
        assert lease.gpus == ("GPU-a", "GPU-b")
        driver.shows("busy,full,ok,ok")
        assert unfit(devices) == {}
    assert set(unfit(devices)) == {"a", "b"}


def test_a_gpu_that_the_driver_shows_no_more_is_missed(
    driver: StubDriver, devices: Devices, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.shows("ok,ok,ok")
    assert unfit(devices) == {}
    # Lost under its name, then gone altogether, with those after it counted anew.
    driver.shows("ok,unopened,ok")
    assert unfit(devices) == {"b": "it can't be opened: GPU is lost"}
    driver.shows("ok,ok")
    assert list(unfit(devices)) == ["c"]
    for _ in range(2):
        assert cli.main(["devices"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "not offered: the driver showed it at" in text
        assert "does not any more: see Xid" in text
    assert "GPU 2" in {one.what for one in _devices() if not one.ok}
    with devices.lease(Need(60, 2, 0), timeout_s=0) as lease:
        assert lease.gpus == ("GPU-a", "GPU-b")


def test_whoever_sees_another_part_of_the_host_misses_nothing(
    driver: StubDriver, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows("ok,ok,ok,ok")
    assert unfit(devices) == {}
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    driver.shows("ok,ok")
    assert unfit(devices) == {}


def test_devices_shows_a_quarantine_and_ends_it(
    driver: StubDriver, devices: Devices, capsys: pytest.CaptureFixture[str]
) -> None:
    from grader.run.devices.quarantine import quarantine

    driver.shows("ok,ok")
    quarantine(devices.folder, "GPU-b", "it fell off the bus in attempt-7")
    assert cli.main(["devices", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [gpu["unfit"][:13] for gpu in told["gpus"]] == ["", "in quarantine"]
    (gpu,) = [one for one in _devices() if one.what == "GPU 1"]
    assert "it fell off the bus in attempt-7" in gpu.found
    assert cli.main(["devices", "--release", "GPU-b"]) == 0
    assert "not offered" not in capsys.readouterr().out
    assert cli.main(["devices", "--release", "GPU-b"]) == 2
    assert "no GPU GPU-b is in quarantine" in capsys.readouterr().err


def test_only_the_model_that_a_host_offers_is_handed_out(
    driver: StubDriver, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows("small,ok,small,ok")
    with devices.lease(Need(60, 2, 0), timeout_s=0) as lease:
        # Though neighbours share NVLink.
        assert lease.gpus == ("GPU-a", "GPU-c")
    monkeypatch.setenv("GRADER_GPU_MODEL", "24gb")
    settings.cache_clear()
    assert unfit(devices) == dict.fromkeys("bd", "GRADER_GPU_MODEL=24gb leaves it to others")


def test_a_driver_too_old_and_a_gpu_without_kernels_are_refused(
    driver: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows("ok,old")
    devices = Devices(tmp_path, torch_build=lambda: TorchBuild.parse("13.2 sm_75 sm_80 sm_90"))
    assert unfit(devices) == {
        "b": "PyTorch has no kernels for its generation (compute capability 7.0; there are sm_75, sm_80, sm_90)"
    }
    monkeypatch.setenv("STUB_DRIVER", "535.183.01 12020")
    with pytest.raises(
        InfraError, match=r"driver 535.183.01 serves CUDA 12.2 at most, .* install driver 580"
    ):
        devices.lease(Need(60, 1, 0))


@pytest.mark.parametrize(
    ("build", "capability", "runs"),
    [
        ("13.2 sm_75 sm_80", "8.0", True),
        ("13.2 sm_75 sm_80", "8.9", True),
        ("13.2 sm_86", "8.0", False),
        ("13.2 sm_75 sm_90", "10.0", False),
        ("13.2 sm_75 compute_90", "10.0", True),
        ("13.2 sm_90a", "9.0", True),
        ("13.2 sm_100a", "10.3", False),
        ("13.2 sm_120", "12.0", True),
        ("13.2", "7.0", True),
        ("13.2 sm_75", "", True),
        ("none", "9.0", False),
    ],
)
def test_kernels_run_on_their_generation_and_newer_of_one_major(
    build: str, capability: str, runs: bool
) -> None:
    made = TorchBuild.parse(build)
    assert made is not None
    assert str(made) == build
    assert (made.refusal(Gpu("GPU-a", 0, cuda="13.0", compute_capability=capability)) == "") == runs


def test_the_installed_torch_is_what_gpus_are_to_be_fit_for(driver: StubDriver) -> None:
    import torch

    build = torch_build("process")
    assert build is not None
    flags = torch._C._cuda_getArchFlags() if torch.version.cuda else ""
    assert str(build) == f"{torch.version.cuda or 'none'} {flags or ''}".strip()
    driver.shows("ok,old")
    old = {gpu.index: gpu.unfit for gpu in host_devices("process").inventory().gpus}[1]
    assert ("has no kernels for its generation" in old) == bool(torch.version.cuda)


def test_the_lock_file_of_an_image_says_for_which_cuda_it_is() -> None:
    locked = torch_build("apptainer")
    assert locked is not None
    assert locked.cuda.partition(".")[0].isdigit()


@pytest.mark.parametrize("hang", ["init-hang", "ok,hang,ok"])
def test_a_driver_that_hangs_hangs_nobody(
    driver: StubDriver,
    devices: Devices,
    hang: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    driver.shows(EIGHT)
    assert unfit(devices) == {}
    monkeypatch.setattr(driver_query, "LIMIT_S", 1.0)
    driver.shows(hang)
    assert cli.main(["devices"]) == 4
    assert "did not answer within 1 s; at" in capsys.readouterr().out
    assert driver_query._query.left is not None
    assert driver_query._query.left.returncode == -signal.SIGKILL
    # Who asks again at once is told at once, and starts nothing.
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(
        InfraError, match=r"none can be had here: the NVIDIA driver did not answer .* 8 × Stub 80GB"
    ):
        devices.lease(Need(60, 1, 0))
    (found,) = [one.found for one in _devices() if one.what == "NVIDIA GPUs"]
    assert "did not answer" in found
    # It comes back by itself.
    monkeypatch.undo()


def test_one_that_cannot_even_be_killed_is_left_behind_alone(
    driver: StubDriver, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_query, "LIMIT_S", 0.5)
    monkeypatch.setattr(driver_query, "_SILENCE_S", 0.0)
    # As in an uninterruptible wait: SIGKILL does nothing for now.
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: None)
    driver.shows("init-hang")
    assert ask_driver().hangs
    left = driver_query._query.left
    assert left is not None
    try:
        driver.shows("ok")
        assert ask_driver().hangs
        assert driver_query._query.left is left
    finally:
        os.kill(left.pid, signal.SIGKILL)
        left.wait(60)
    monkeypatch.setattr(driver_query, "LIMIT_S", 60.0)
    assert [gpu.uuid for gpu in ask_driver().gpus] == ["GPU-a"]


def test_jobs_without_gpus_ask_no_driver(driver: StubDriver, devices: Devices) -> None:
    driver.shows("init-hang")
    began = time.monotonic()
    devices.lease(Need(60, 0, 1), timeout_s=0).release()
    assert time.monotonic() - began < driver_query.LIMIT_S


def test_cards_without_a_driver_and_those_of_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    monkeypatch.setattr(nvml, "_PCI_DEVICES", tmp_path / "pci")
    monkeypatch.setattr(nvml, "_AMD_DRIVER", tmp_path / "kfd")
    assert nvml._no_driver(missing).startswith("no NVIDIA driver")
    (tmp_path / "kfd").mkdir()
    assert "ROCm" in nvml._no_driver(missing)
    for number, kind in enumerate(("0x030200", "0x040300")):
        device = tmp_path / "pci" / str(number)
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text(f"{kind}\n")
    assert nvml._no_driver(missing).startswith("1 NVIDIA card is in here, but no driver")
