"""A prepared version goes from one host to another: whole and the same, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.data import transfer
from grader.catalog.data.datasets import find_dataset, prepare, prepared
from grader.catalog.data.transfer import OfferedData, data_piece, offered_data, take_data
from grader.catalog.tasks.task_folders import load_task
from grader.errors import InfraError, UsageError
from grader.settings import settings

Host = Callable[[str], None]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Go to another host: a data folder of its own."""

    def go(name: str) -> None:
        monkeypatch.setenv("GRADER_DATA_DIR", str(tmp_path / name))
        settings.cache_clear()

    yield go
    settings.cache_clear()


@pytest.fixture
def offered(host: Host) -> OfferedData:
    """Digits, prepared on the host `there`."""
    host("there")
    task = load_task("ddp-fashion")
    assert offered_data(task, None) is None
    prepare("digits")
    found = offered_data(task, None)
    assert found is not None
    return found


def asking(
    host: Host, offered: OfferedData, spoil: Callable[[bytes], bytes] = bytes
) -> Callable[[int, int], bytes]:
    def piece(number: int, offset: int) -> bytes:
        host("there")
        found = data_piece(offered, number, offset)
        host("here")
        return spoil(found)

    return piece


def test_a_version_is_taken_piece_by_piece(
    host: Host, offered: OfferedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PIECE_BYTES", 100_000)
    with pytest.raises(UsageError):
        data_piece(offered, 99, 0)
    host("here")
    assert prepared("digits") is None
    taken = take_data(offered, asking(host, offered))
    there = offered.manifest
    assert (taken.version, taken.num_train) == (there.version, there.num_train)
    assert find_dataset(load_task("ddp-fashion")) == taken
    assert {path.name for path in taken.hidden_dir.rglob("*") if path.is_file()} == {
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    }


def test_what_comes_otherwise_is_never_in_use(host: Host, offered: OfferedData) -> None:
    host("here")
    spoils: tuple[Callable[[bytes], bytes], ...] = (lambda part: part[:-1] + b"?", lambda _: b"")
    for spoil in spoils:
        with pytest.raises(InfraError, match="did not come as it was offered"):
            take_data(offered, asking(host, offered, spoil))
    first = next(iter(offered.manifest.files))
    for strange in ("../outside", first.replace("visible", "elsewhere"), "visible/digits/x/y"):
        files = {strange: offered.manifest.files[first]}
        with pytest.raises((InfraError, UsageError)):
            take_data(
                OfferedData(offered.place, replace(offered.manifest, files=files)), asking(host, offered)
            )
    with pytest.raises(InfraError):
        take_data(replace(offered, place="../digits.json"), asking(host, offered))
    assert prepared("digits") is None
