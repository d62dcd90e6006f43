"""GPUs in quarantine: handed out to nobody, also not to those who wait already, until a person lets them back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.errors import InfraError
from grader.run.devices.leases import Devices
from grader.run.devices.need import Need
from grader.run.devices.quarantine import quarantine, quarantined, release_gpu
from tests.run.devices.holder import host


def test_a_gpu_in_quarantine_is_handed_out_again_once_it_is_released(tmp_path: Path) -> None:
    folder, devices = tmp_path / "devices", Devices(tmp_path, inventory=host)
    assert quarantined(folder) == {}
    quarantine(folder, "GPU-1", "it fell off the bus in attempt-7")
    quarantine(folder, "GPU-1", "and again")
    assert quarantined(folder) == {"GPU-1": "it fell off the bus in attempt-7"}
    with devices.lease(Need(60, 3, 0), timeout_s=0) as lease:
        assert lease.gpus == ("GPU-0", "GPU-2", "GPU-3")
    with pytest.raises(
        InfraError, match=r"GPU 1 \(GPU-1\): in quarantine .* it fell off the bus in attempt-7"
    ):
        devices.lease(Need(60, 4, 0))
    assert release_gpu(folder, "GPU-1")
    assert not release_gpu(folder, "GPU-1")
    devices.lease(Need(60, 4, 0), timeout_s=0).release()


def test_one_that_waits_does_not_get_what_was_put_into_quarantine_meanwhile(tmp_path: Path) -> None:
    devices = Devices(tmp_path, inventory=host)
    holder = devices.lease(Need(60, 4, 0))

    def meanwhile(_wait: object) -> None:
        quarantine(tmp_path / "devices", "GPU-0", "the preflight failed on it")
        # Whoever holds it still does.
        holder.check()
        holder.release()

    with devices.lease(Need(60, 2, 0), on_wait=meanwhile) as lease:
        assert lease.gpus == ("GPU-1", "GPU-2")


def test_a_restart_of_the_host_ends_it(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    quarantine(folder, "GPU-0", "the preflight failed on it")
    book = json.loads((folder / "book.json").read_text())
    (folder / "book.json").write_text(json.dumps(book | {"boot": "before"}))
    assert quarantined(folder) == {}


def test_a_book_from_before_there_was_any_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    quarantine(folder, "GPU-0", "the preflight failed on it")
    book = json.loads((folder / "book.json").read_text())
    del book["quarantined"]
    (folder / "book.json").write_text(json.dumps(book))
    assert quarantined(folder) == {}
