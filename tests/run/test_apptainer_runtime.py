"""What the apptainer runtime promises beyond the protocol, in real containers of an ordinary account."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.run.apptainer import installation
from grader.run.runtimes import apptainer
from grader.run.runtimes.apptainer import ApptainerRuntime
from grader.run.script_runs import RunScript, limits_with, processes_with, run_script
from tests.run.apptainer_absence import MAY_BE_ABSENT

pytestmark = [pytest.mark.slow, *MAY_BE_ABSENT]


@pytest.fixture(scope="module")
def warm_apptainer() -> Iterator[ApptainerRuntime]:
    runtime = ApptainerRuntime()
    test = runtime.self_test()
    if not test.usable:
        pytest.skip(test.reason)
    with runtime:
        yield runtime


@pytest.fixture
def run(warm_apptainer: ApptainerRuntime, tmp_path: Path) -> RunScript:
    return lambda script, **options: run_script(warm_apptainer, tmp_path, script, **options)


def folders() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(f"grader-apptainer-{os.getpid()}-*/attempt-*"))


LOOK_AROUND = """
    import ctypes, errno, json, os, socket

    def status(pid):
        lines = open(f"/proc/{pid}/status").read().splitlines()
        return dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)

    def attempt(action):
        try:
            return str(action())
        except OSError as error:
            return errno.errorcode.get(error.errno, type(error).__name__)

    libc = ctypes.CDLL(None, use_errno=True)

    def call(number, *arguments):
        result = libc.syscall(number, *arguments)
        return result if result >= 0 else errno.errorcode[ctypes.get_errno()]

    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    above = [pid for pid in pids if int(pid) < os.getpid()]
    mine = status("self")
    print(json.dumps({
        "me": [os.getuid(), mine["CapEff"], mine["NoNewPrivs"], mine["Seccomp"]],
        "signal": sorted({attempt(lambda: os.kill(int(pid), 0)) for pid in above}),
        "memory": sorted({attempt(lambda: open(f"/proc/{pid}/mem", "rb")) for pid in above}),
        "record": attempt(lambda: os.listdir("/record")),
        "hidden": attempt(lambda: os.listdir("/hidden")),
        "writes": [attempt(lambda: open(path, "w")) for path in ("/x", "/etc/x", "/opt/grader/x", "/data/x")],
        "links": [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]],
        "connect": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 2)),
        "raw": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
        "clone3": call(435, None, 0),
        "unshare": call(272, 0x10000000),
        "ptrace": call(101, 16, 1, 0, 0),
        "host": [os.path.exists(path) for path in HOST],
        "processes": len(pids),
    }))
"""


def look_around(run: RunScript, **options: Any) -> dict[str, Any]:
    host = [str(Path(__file__).resolve()), tempfile.gettempdir() + "/grader-host-file", "/home", "/mnt"]
    Path(host[1]).write_text("of the machine")
    try:
        ran = run(LOOK_AROUND.replace("HOST", repr(host[:2])), nproc_per_node=1, **options)
    finally:
        Path(host[1]).unlink()
    assert ran.exit_codes == [0], ran.err()
    seen: dict[str, Any] = json.loads(ran.out())
    return seen


def test_a_rank_has_no_rights_no_network_and_nothing_of_the_machine(run: RunScript) -> None:
    seen = look_around(run)
    assert seen["me"][0] != 0
    assert seen["me"][1:] == ["0000000000000000", "1", "2"]
    assert seen["writes"] == ["EROFS", "EROFS", "EROFS", "EROFS"]
    assert seen["links"] == ["lo"]
    assert seen["connect"] == "ENETUNREACH"
    assert seen["raw"] == seen["unshare"] == seen["ptrace"] == "EPERM"
    assert seen["clone3"] == "ENOSYS"
    assert seen["host"] == [False, False]
    assert seen["hidden"] == "ENOENT"
    assert seen["processes"] < 20


def test_a_rank_is_kept_apart_from_its_supervisor_where_users_can_be_mapped(
    warm_apptainer: ApptainerRuntime, run: RunScript
) -> None:
    here = installation.find_installation()
    assert not isinstance(here, str)
    seen = look_around(run)
    if here.maps_users:
        assert seen["me"][0] >= 20000
        assert seen["signal"] == ["EPERM"]
        assert seen["memory"] == ["EACCES"]
        assert seen["record"] == "EACCES"
    else:
        assert seen["me"][0] == here.uid
    ran = run("pass", nproc_per_node=1)
    gap = str(ran.record.environment["isolation_gap"])
    assert ("same user as their supervisor" in gap) == (not here.maps_users)


def test_without_subordinate_users_it_still_runs_and_the_record_says_what_that_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = installation.find_installation()
    if isinstance(here, str):
        pytest.skip(here)
    monkeypatch.setattr(apptainer, "find_installation", lambda: replace(here, maps_users=False))
    with ApptainerRuntime() as runtime:
        if not (test := runtime.self_test()).usable:
            pytest.skip(test.reason)
        assert "share their supervisor's user" in test.reason
        ran = run_script(runtime, tmp_path, LOOK_AROUND.replace("HOST", "[]"), nproc_per_node=1)
    assert ran.exit_codes == [0], ran.err()
    seen = json.loads(ran.out())
    assert seen["me"] == [here.uid, "0000000000000000", "1", "2"]
    assert seen["connect"] == "ENETUNREACH"
    assert ran.record.isolated
    assert "same user as their supervisor" in str(ran.record.environment["isolation_gap"])


def test_files_that_a_rank_closed_to_others_come_back(run: RunScript) -> None:
    ran = run(
        """
        import os
        os.umask(0o077)
        os.chdir(os.environ["OUTPUT_DIR"])
        os.makedirs("deep/er")
        open("deep/er/model.pt", "w").write("weights")
        os.chmod("deep", 0)
        """,
        nproc_per_node=1,
    )
    assert ran.exit_codes == [0], ran.err()
    assert ran.output("deep/er/model.pt") == "weights"


def test_a_fork_bomb_ends_with_its_run(run: RunScript) -> None:
    ran = run(
        """
        import os
        os.execv("/bin/sh", ["sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"])
        """,
        nproc_per_node=1,
        limits=limits_with(wall_s=8.0),
    )
    assert "Cannot fork" in ran.err()
    assert ran.record.wall_s < 8 + 5


def test_nothing_is_left_of_an_attempt_that_was_let_go(
    warm_apptainer: ApptainerRuntime, run: RunScript
) -> None:
    run("import os; open(os.environ['TMPDIR'] + '/canary', 'w').write('x'); os.mkdir('/dev/shm/canary')")
    used = folders()
    warm_apptainer.release()
    left = folders()
    # Containers for the next attempt wait in a folder of their own.
    assert len(used) == len(left) == 1
    assert not set(used) & set(left)
    assert len(processes_with(str(left[0]))) > 0
    assert processes_with(str(used[0])) == []
    ran = run("import os; print(os.listdir(os.environ['TMPDIR']), os.listdir('/dev/shm'))", nproc_per_node=1)
    assert ran.out() == "[] []\n"


def test_what_a_killed_grader_left_goes_with_the_next_start(
    warm_apptainer: ApptainerRuntime, tmp_path: Path
) -> None:
    script = """
        import sys
        from pathlib import Path
        from grader.run.script_runs import run_script
        from grader.run.runtimes.apptainer import ApptainerRuntime
        with ApptainerRuntime() as runtime:
            run_script(runtime, Path(sys.argv[1]), '''
                import os, time
                open(os.environ["OUTPUT_DIR"] + "/left", "w").write("x")
                os.chmod(os.environ["OUTPUT_DIR"] + "/left", 0)
                print("here 54321.5", flush=True)
                time.sleep(500)
            ''', nproc_per_node=1)
    """
    lines = "\n".join(line.removeprefix("        ") for line in script.splitlines())
    grader = subprocess.Popen([sys.executable, "-c", lines, str(tmp_path)])
    pattern = f"grader-apptainer-{grader.pid}-*/attempt-*/out/left"
    deadline = time.monotonic() + 90
    while not list(Path(tempfile.gettempdir()).glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.2)
    left = [path.parent.parent for path in Path(tempfile.gettempdir()).glob(pattern)]
    assert len(left) == 1
    os.kill(grader.pid, signal.SIGKILL)
    grader.wait()
    deadline = time.monotonic() + 30
    while processes_with(str(left[0])) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes_with(str(left[0])) == [], "containers outlived the end of their grader"
    assert left[0].exists()
    with ApptainerRuntime():
        assert not left[0].exists()
        assert not left[0].parent.exists()
