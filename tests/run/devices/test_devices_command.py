"""`grader devices`: what people and programs are told of inventory, leases and queue."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import cli
from grader.doctor import diagnose
from grader.run.devices.leases import Devices
from grader.run.devices.need import Need
from grader.settings import settings


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Devices]:
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path))
    settings.cache_clear()
    yield Devices(tmp_path)
    monkeypatch.undo()
    settings.cache_clear()


def test_programs_are_told_who_holds_what(devices: Devices, capsys: pytest.CaptureFixture[str]) -> None:
    with devices.lease(Need(60, num_cores=1, owner="attempt-7")) as lease:
        assert cli.main(["devices", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
    assert {tuple(core["cpus"]) for core in told["cores"] if core["token"] == lease.token} == {lease.cpus}
    (held,) = told["leases"]
    assert (held["state"], held["owner"], held["pid"]) == ("holds", "attempt-7", os.getpid())
    assert told["queue"] == []
    assert bool(told["gpus"]) != bool(told["no_gpus"])


def test_people_are_told_who_waits_and_for_what(devices: Devices, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    def look(_wait: object) -> None:
        assert cli.main(["devices"]) == 0
        shown.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    everything = Need(60, num_cores=10_000, owner="attempt-7")
    with devices.lease(everything), pytest.raises(KeyboardInterrupt):
        devices.lease(Need(30, num_cores=1, owner="attempt-8"), on_wait=look)
    assert "0 free" in shown[0]
    rows = [line.split() for line in shown[0].splitlines()]
    assert [row[:2] for row in rows if row and row[0] in ("holds", "waits")] == [
        ["holds", "attempt-7"],
        ["waits", "attempt-8"],
    ]


def test_an_idle_host_is_shown_without_leaving_a_trace(
    devices: Devices, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["devices"]) == 0
    assert "nobody holds devices, nobody waits" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_counts_leases_and_names_a_damaged_book(devices: Devices, tmp_path: Path) -> None:
    with devices.lease(Need(60, num_cores=1)):
        assert {d.what: d.found for d in diagnose()}["leases"] == "1 held, 0 waiting"
        (tmp_path / "devices" / "book.json").write_text("{")
        (leases,) = [d for d in diagnose() if d.what == "leases"]
        assert not leases.ok
        assert "is damaged" in leases.remedy
