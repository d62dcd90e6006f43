"""Leases between real processes: never shared, in turn, and back however a holder ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.errors import InfraError
from grader.launch.system.processes import usage
from grader.run.devices import abandoned_leases, lease_book
from grader.run.devices.abandoned_leases import AbandonedLease
from grader.run.devices.hardware import Core, Gpu, Inventory
from grader.run.devices.heartbeat_file import HeartbeatFile
from grader.run.devices.lease import LeaseLostError, is_current
from grader.run.devices.lease_status import LeaseStatus
from grader.run.devices.leases import Devices, Wait
from grader.run.devices.need import Need
from tests.run.devices.holder import clear, host

REPOSITORY = Path(__file__).resolve().parents[3]
LONG_S = 60.0


class Holder:
    """A process of `holder.py`; whoever is waited for gets a generous time, and nobody else is measured."""

    def __init__(self, state: Path, owner: str, **settings: Any) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.run.devices.holder",
                str(state),
                json.dumps({"owner": owner, **settings}),
            ],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def hear(self, event: str) -> dict[str, Any]:
        """The next thing it says, which has to be this."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended instead"
        said: dict[str, Any] = json.loads(line)
        assert said["event"] == event, said
        return said

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def end(self) -> None:
        self.tell("end")
        self.hear("released")
        assert self.process.wait(LONG_S) == 0

    def signal(self, signum: int) -> None:
        self.process.send_signal(signum)
        if signum == signal.SIGKILL:
            self.process.wait(LONG_S)
        elif signum == signal.SIGSTOP:
            until(
                lambda: (
                    Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
                )
            )


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.01)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def begin(owner: str, **settings: Any) -> Holder:
        holders.append(Holder(tmp_path, owner, **settings))
        return holders[-1]

    yield begin
    for holder in holders:
        holder.process.kill()
        holder.process.communicate()


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    return Devices(tmp_path, inventory=host)


def left_on_disk(state: Path) -> set[str]:
    return {path.name for path in (state / "devices").iterdir()}


def test_processes_never_share_a_device(
    tmp_path: Path, start: Callable[..., Holder], devices: Devices
) -> None:
    (tmp_path / "marks").mkdir()
    needs = [(1, 1), (2, 1), (4, 2), (0, 3), (1, 4), (3, 0)]
    holders = [
        start(f"h{i}", num_gpus=gpus, num_cores=cores, wall_s=5, rounds=12)
        for i, (gpus, cores) in enumerate(needs)
    ]
    tokens = [holder.hear("done")["last"] for holder in holders]
    assert len(set(tokens)) == len(tokens)
    assert devices.listing() == ()
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_devices_of_a_killed_holder_come_back_once_what_it_left_is_ended(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    victim = start("victim", num_gpus=4)
    token = victim.hear("has")["token"]
    seen: list[AbandonedLease] = []

    def reclaim(left: AbandonedLease) -> None:
        # Not handed on before this returns.
        assert [(e.state, e.token) for e in host_devices.listing() if e.gpus] == [("holds", token)]
        seen.append(left)

    host_devices = Devices(tmp_path, inventory=host, reclaim=reclaim)
    with pytest.raises(InfraError, match=r"did not come free within .* In use by: victim \(process \d+\)"):
        host_devices.lease(Need(60, 1, 0), timeout_s=0)
    victim.signal(signal.SIGKILL)
    assert [entry.state for entry in host_devices.listing()] == ["ended"]
    with host_devices.lease(Need(60, 4, 0, "heir"), timeout_s=LONG_S) as lease:
        assert lease.token > token
        assert [(one.token, one.owner, one.pid, one.hung) for one in seen] == [
            (token, "victim", victim.process.pid, False)
        ]
        assert seen[0].gpus == lease.gpus
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_children_of_a_killed_holder_keep_nothing(start: Callable[..., Holder], devices: Devices) -> None:
    victim = start("victim", num_gpus=4)
    victim.hear("has")
    victim.tell("fork")
    children = victim.hear("forked")["pids"]
    try:
        victim.signal(signal.SIGKILL)
        assert all(usage(pid) is not None for pid in children)
        devices.lease(Need(60, 4, 0), timeout_s=LONG_S).release()
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def test_one_that_hangs_beyond_its_limit_loses_its_lease_and_is_told(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    stopped = start("stopped", num_gpus=4, wall_s=0.3)
    token = stopped.hear("has")["token"]
    stopped.tell("check")
    stopped.hear("ours")
    stopped.signal(signal.SIGSTOP)
    seen: list[AbandonedLease] = []
    devices = Devices(tmp_path, inventory=host, reclaim=seen.append, overdue_s=0.3)
    with devices.lease(Need(60, 4, 0, "next"), timeout_s=LONG_S) as lease:
        assert [(one.token, one.hung) for one in seen] == [(token, True)]
        assert lease.token > token
        stopped.signal(signal.SIGCONT)
        stopped.tell("check")
        said = stopped.hear("lost")
        assert said["kind"] == "LeaseLostError"
        assert "over its limit of 0.3 s" in said["message"]
        assert not is_current(tmp_path / "devices", token)
        # What it believes to release is not its own any more.
        stopped.end()
        lease.check()
        assert is_current(tmp_path / "devices", lease.token)
        assert [entry.owner for entry in devices.listing()] == ["next"]
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_one_that_comes_back_too_late_cannot_free_what_is_still_being_cleaned_up(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    stopped = start("stopped", num_gpus=4, wall_s=0.1)
    token = stopped.hear("has")["token"]
    stopped.signal(signal.SIGSTOP)

    def reclaim(_left: AbandonedLease) -> None:
        stopped.signal(signal.SIGCONT)
        stopped.end()
        assert [entry.token for entry in host_devices.listing() if entry.gpus] == [token]

    host_devices = Devices(tmp_path, inventory=host, reclaim=reclaim, overdue_s=0.1)
    with host_devices.lease(Need(60, 4, 0), timeout_s=LONG_S) as lease:
        assert [entry.token for entry in host_devices.listing()] == [lease.token]


def test_within_its_limit_and_the_grace_after_it_nobody_loses_a_lease(
    start: Callable[..., Holder], devices: Devices
) -> None:
    late = start("late", num_gpus=4, wall_s=0.01)
    late.hear("has")
    with pytest.raises(InfraError, match="In use by: late"):
        devices.lease(Need(60, 4, 0), timeout_s=0.5)
    late.tell("check")
    late.hear("ours")
    late.end()


def test_in_turn_unless_one_is_done_before_it_would_matter(start: Callable[..., Holder]) -> None:
    holder = start("holder", num_gpus=3, wall_s=50)
    holder.hear("has")
    wide = start("wide", num_gpus=4)
    assert wide.hear("waits")["ahead"] == 0
    long = start("long", num_gpus=1, wall_s=100)
    assert long.hear("waits")["ahead"] == 1
    # The fourth GPU is free for less than the holder's 50 s.
    short = start("short", num_gpus=1, wall_s=20)
    short.hear("has")
    short.end()
    holder.end()
    wide.hear("has")
    wide.end()
    long.hear("has")
    long.end()


def test_graders_that_may_use_different_parts_of_a_host_do_not_queue_for_each_other(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    whole = host()
    part = Devices(tmp_path, inventory=lambda _gpus: Inventory(whole.gpus[:2], whole.cores[:2]))
    rest = Devices(tmp_path, inventory=lambda _gpus: Inventory(whole.gpus[2:], whole.cores[2:]))

    def meanwhile(_wait: Wait) -> None:
        with rest.lease(Need(900, 2, 2), timeout_s=0) as lease:
            assert lease.gpus == ("GPU-2", "GPU-3")
            # One that sees all of it has to wait for both.
            with pytest.raises(InfraError):
                Devices(tmp_path, inventory=host).lease(Need(1, 1, 0), timeout_s=0)
        raise KeyboardInterrupt

    with part.lease(Need(60, 2, 2)), pytest.raises(KeyboardInterrupt):
        part.lease(Need(60, 2, 2), on_wait=meanwhile)


def test_dead_and_stopped_waiters_hold_nobody_up(
    start: Callable[..., Holder], devices: Devices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned_leases, "_SILENT_S", 1.0)
    holder = start("holder", num_gpus=4)
    holder.hear("has")
    dead, stopped = start("dead", num_gpus=4), start("stopped", num_gpus=4)
    for one in (dead, stopped):
        one.hear("waits")
    dead.signal(signal.SIGKILL)
    # Not in the milliseconds in which it has the book itself: whoever stops there does hold everybody up, and is named.
    with lease_book.open_book(tmp_path / "devices"):
        stopped.signal(signal.SIGSTOP)
    holder.end()
    with devices.lease(Need(60, 4, 0), timeout_s=LONG_S):
        assert [entry.owner for entry in devices.listing()] == ["stopped", ""]
        # It kept its place.
        stopped.signal(signal.SIGCONT)
    stopped.hear("has")
    stopped.end()


def test_while_something_a_dead_holder_left_still_runs_its_devices_stay_out(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    victim = start("victim", num_gpus=3)
    victim.hear("has")
    victim.signal(signal.SIGKILL)
    tries: list[int] = []

    def reclaim(left: AbandonedLease) -> None:
        tries.append(left.token)
        if len(tries) == 1:
            raise InfraError("the engine does not answer")

    devices = Devices(tmp_path, inventory=host, reclaim=reclaim)
    with devices.lease(Need(60, 1, 0), timeout_s=LONG_S) as lease:
        assert lease.gpus == ("GPU-3",)
    with pytest.raises(InfraError, match="What victim left can't be ended: the engine does not answer"):
        Devices(tmp_path, inventory=host, reclaim=raises).lease(Need(60, 4, 0), timeout_s=0.2)
    devices.lease(Need(60, 4, 0), timeout_s=LONG_S).release()
    assert len(tries) == 2


def raises(left: AbandonedLease) -> None:
    raise InfraError("the engine does not answer")


@pytest.mark.slow
def test_killed_at_any_moment_they_leave_nothing_taken(tmp_path: Path, start: Callable[..., Holder]) -> None:
    (tmp_path / "marks").mkdir()
    devices = Devices(tmp_path, inventory=host, reclaim=lambda left: clear(left, tmp_path / "marks"))
    for number in range(8):
        crowd = [
            start(f"{number}.{i}", num_gpus=width, num_cores=width, wall_s=5, rounds=10_000)
            for i, width in enumerate((1, 2, 3))
        ]
        until(lambda: len(devices.listing()) > 0)
        time.sleep(0.02 * number)
        for one in crowd:
            one.signal(signal.SIGKILL)
        with devices.lease(Need(5, 4, 4), timeout_s=LONG_S) as lease:
            assert (len(lease.gpus), lease.num_cores) == (4, 4)
        assert devices.listing() == ()
        assert left_on_disk(tmp_path) <= {"lock", "book.json", "book.json.new"}


def test_interrupted_while_waiting_one_leaves_no_ticket(tmp_path: Path, devices: Devices) -> None:
    def interrupt(wait: Wait) -> None:
        raise KeyboardInterrupt

    with devices.lease(Need(60, 4, 0)):
        with pytest.raises(KeyboardInterrupt):
            devices.lease(Need(60, 1, 0), on_wait=interrupt)
        assert len(devices.listing()) == 1
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_one_that_waits_is_told_how_long(devices: Devices) -> None:
    waits: list[Wait] = []
    with devices.lease(Need(1000, 4, 0, "long")), pytest.raises(InfraError):
        devices.lease(Need(60, 1, 0), timeout_s=0.3, on_wait=waits.append)
    assert all(900 < (wait.expected_s or 0) <= 1000 for wait in waits)
    assert all(wait.ahead == 0 for wait in waits)
    assert len(waits) >= 2


def test_a_lease_that_was_given_back_is_worth_nothing(devices: Devices) -> None:
    lease = devices.lease(Need(60, 1, 1))
    lease.check()
    lease.release()
    lease.release()
    with pytest.raises(LeaseLostError, match="was given back"):
        lease.check()


def test_a_forked_child_neither_has_the_lease_nor_gives_it_back(start: Callable[..., Holder]) -> None:
    holder = start("holder", num_gpus=1)
    holder.hear("has")
    holder.tell("child releases")
    assert holder.hear("child")["code"] == 0
    holder.tell("check")
    holder.hear("ours")
    holder.end()


def test_one_that_dies_while_cleaning_up_is_cleaned_up_after(
    tmp_path: Path, start: Callable[..., Holder]
) -> None:
    victim = start("victim", num_gpus=4)
    token = victim.hear("has")["token"]
    heir = start("heir", num_gpus=4, stuck=True)
    heir.hear("waits")
    victim.signal(signal.SIGKILL)
    assert heir.hear("reclaim")["token"] == token
    seen: list[AbandonedLease] = []
    devices = Devices(tmp_path, inventory=host, reclaim=seen.append)
    with pytest.raises(InfraError):
        devices.lease(Need(60, 4, 0), timeout_s=0.3)
    assert seen == [], "two cleaned up after the same one"
    heir.signal(signal.SIGKILL)
    devices.lease(Need(60, 4, 0), timeout_s=LONG_S).release()
    assert [one.token for one in seen] == [token]
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_a_host_with_fewer_cores_gives_all_it_has_to_one(tmp_path: Path) -> None:
    small = Devices(
        tmp_path, inventory=lambda _gpus: Inventory((), (Core((0, 2)), Core((1, 3))), "no driver")
    )
    with small.lease(Need(60, num_cores=4)) as lease:
        assert lease.cpuset == "0-3"
        assert lease.facts | {"token": 0, "waited_s": 0} == {
            "token": 0, "gpus": [], "cpus": "0-3", "num_cores": 2, "num_cores_asked": 4, "waited_s": 0,
        }  # fmt: skip
        with pytest.raises(InfraError):
            small.lease(Need(60, num_cores=1), timeout_s=0)


def test_what_a_host_can_never_give_is_refused_at_once_with_the_reason(tmp_path: Path) -> None:
    cores = (Core((0,)),)
    none = Devices(tmp_path, inventory=lambda _gpus: Inventory((), cores, "no NVIDIA driver"))
    with pytest.raises(InfraError, match="1 GPU is needed, and none can be had here: no NVIDIA driver"):
        none.lease(Need(60, 1))
    fit, ill = Gpu("GPU-a", 0), Gpu("GPU-b", 1, unfit="3 uncorrected memory errors since its last reset")
    two = Devices(tmp_path, inventory=lambda _gpus: Inventory((fit, ill), cores))
    with pytest.raises(InfraError, match="4 GPUs are needed, and this host has 2"):
        two.lease(Need(60, 4))
    with pytest.raises(InfraError, match=r"only 1 can be handed out here. GPU 1 \(GPU-b\): 3 uncorrected"):
        two.lease(Need(60, 2))
    with two.lease(Need(60, 1)) as lease:
        assert lease.gpus == ("GPU-a",)
    assert two.listing() == ()


@pytest.mark.parametrize(
    "wrong", [{"num_cores": 0}, {"num_gpus": -1}, {"wall_s": 0}, {"wall_s": float("inf")}]
)
def test_a_need_that_makes_no_sense_is_the_callers_mistake(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"can't be leased|needs a time limit"):
        Need(**{"wall_s": 60.0} | wrong)


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"schema": 99}', "[]", '{"schema": 1, "boot": "another", "counter": 7, "tickets": []}'],
)
def test_a_book_of_no_use_starts_anew_but_never_under_a_holder(
    tmp_path: Path, devices: Devices, damage: str
) -> None:
    path = tmp_path / "devices" / "book.json"
    with devices.lease(Need(60, 1, 0)) as lease:
        kept = path.read_text()
        path.write_text(damage)
        with pytest.raises(InfraError, match="devices are in use"):
            devices.lease(Need(60, 1, 0), timeout_s=0)
        with pytest.raises(InfraError, match="devices are in use"):
            devices.listing()
        path.write_text(kept)
        lease.check()
        token = lease.token
    path.write_text(damage)
    with devices.lease(Need(60, 4, 4)) as lease:
        assert lease.token > token
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_one_that_sits_on_the_book_is_named(
    tmp_path: Path, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_book, "_PATIENCE_S", 0.2)
    with devices.lease(Need(60, 1, 0)) as lease:
        stuck = HeartbeatFile.create(tmp_path / "devices" / "lock", time.monotonic())
        with pytest.raises(InfraError, match=f"Process {os.getpid()} has kept .* Is it stopped"):
            devices.lease(Need(60, 1, 0), timeout_s=0)
        # To look needs no lock, and to give back does not depend on it.
        assert [entry.state for entry in devices.listing()] == ["holds"]
        lease.check()
    assert [entry.state for entry in devices.listing()] == ["ended"]
    stuck.close()
    devices.lease(Need(60, 4, 0), timeout_s=LONG_S).release()


def test_files_that_a_crash_left_are_cleared_away(tmp_path: Path, devices: Devices) -> None:
    devices.lease(Need(60, 1, 0)).release()
    for name in ("17.alive", "18.alive", ".book.json-17ab"):
        (tmp_path / "devices" / name).write_text("")
    devices.lease(Need(60, 1, 0)).release()
    assert left_on_disk(tmp_path) == {"lock", "book.json"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match="which can't be written"):
        Devices(tmp_path / "file", inventory=host).lease(Need(60, 1, 0))


def test_looking_changes_nothing(tmp_path: Path, devices: Devices) -> None:
    assert devices.listing() == ()
    assert list(tmp_path.iterdir()) == []
    with devices.lease(Need(60, 2, 1, "somebody")) as lease:
        before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "devices").iterdir()}
        (entry,) = devices.listing()
        assert entry == LeaseStatus(
            "holds",
            "somebody",
            os.getpid(),
            2,
            1,
            60,
            entry.since_unix_s,
            lease.token,
            lease.gpus,
            lease.cpus,
        )
        assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "devices").iterdir()} == before
