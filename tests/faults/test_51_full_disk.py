"""Row 51: the disk that workers write to is full. Nothing is lost, and work goes on once there is room."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.store.queue.queue import queue_state
from grader.store.tables.attempt import AttemptState
from grader.web.monitoring.health import MIN_FREE_BYTES
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site
from tests.worker.rig import SLOW, wait_until

ROOM_BYTES = 48 << 20
SERVER_BYTES = MIN_FREE_BYTES + (64 << 20)


@pytest.fixture(params=[ROOM_BYTES])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of its own of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this machine lets nobody mount a small file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"\0" * (1 << 16)):
            pass
    assert shutil.disk_usage(path.parent).free < 1 << 20


def test_full_in_the_middle_of_an_attempt(site: Site, small_disk: Path) -> None:
    rig = site(GRADER_STATE_DIR=str(small_disk), GRADER_MIN_FREE_BYTES=str(4 << 20))
    rig.relay()
    rig.worker()
    running = rig.hand_in(rig.script(SLOW.replace("600", "15")))
    rig.wait_running(running)
    filler = small_disk / "filler"
    fill(filler)
    waiting = rig.hand_in()

    def out_of_service() -> bool:
        workers = queue_state(rig.store).workers
        return bool(workers) and workers[0].needs == ()

    wait_until(out_of_service, "the worker takes itself out")
    wait_until(lambda: rig.facts(running).state is AttemptState.QUEUED, "the attempt goes back")
    assert rig.facts(waiting).state is AttemptState.QUEUED
    filler.unlink()
    for attempt_id in (running, waiting):
        assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1, "somebody was charged for our disk"
    assert_judged_once(rig, [running, waiting])
    lines = [json.loads(line) for line in (rig.folder / "w1.log").read_text().splitlines() if line.strip()]
    assert any(line["event"] == "out of service" for line in lines)


@pytest.mark.parametrize("small_disk", [SERVER_BYTES], indirect=True)
def test_full_where_a_remote_worker_sends_its_evidence(site: Site, small_disk: Path) -> None:
    """It waits with what it has judged, which nobody has to judge again."""
    rig = site(remote=True, GRADER_STATE_DIR=str(small_disk))
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * (SERVER_BYTES - MIN_FREE_BYTES))
    rig.worker("w1", GRADER_STATE_DIR=str(rig.folder / "state"))
    attempt_id = rig.hand_in()
    wait_until(lambda: "answers 503" in (rig.folder / "w1.log").read_text(), "it is told to wait")
    assert rig.facts(attempt_id).state is AttemptState.RUNNING
    filler.unlink()
    assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1
    assert_judged_once(rig, [attempt_id])
