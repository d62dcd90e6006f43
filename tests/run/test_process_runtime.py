"""The process runtime when things go wrong around it: killed helpers, Ctrl-C, a judge that dies, its own leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.errors import InfraError
from grader.model.run import Ending
from grader.run.runtime import Progress
from grader.run.runtimes.process import ProcessRuntime
from grader.run.script_runs import limits_with, make_job, processes_with, run_script
from grader.run.workspace import Workspace
from tests.interrupts import in_foreground

JUDGE = """
import sys
from pathlib import Path
from grader.run.runtimes.process import ProcessRuntime
from grader.run.workspace import Workspace
from grader.run.script_runs import make_job

root = Path(sys.argv[1])
script = '''
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", MARKER])
    os._exit(0)
subprocess.Popen(["sleep", MARKER])
print("started", flush=True)
time.sleep(60)
'''.replace("MARKER", repr(sys.argv[2]))

def tell(progress):
    if progress.line == "started":
        print("started", flush=True)

with ProcessRuntime() as runtime:
    runtime.run(make_job(root, "judged", script), Workspace(root / "attempt"), tell)
"""


@pytest.fixture(scope="module")
def own_runtime() -> Iterator[ProcessRuntime]:
    with ProcessRuntime() as runtime:
        runtime.warm()
        yield runtime


def folders_of_runs() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob(f"grader-run-{os.getpid()}-*")}


def nothing_left(marker: str, limit_s: float = 10.0) -> bool:
    """Whether no process with the marker, and no fork server started for it, remains within a while."""
    deadline = time.monotonic() + limit_s
    while processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_with(marker)


def start_judge(root: Path, marker: str) -> subprocess.Popen[str]:
    (root / "attempt").mkdir()
    temporary = root / "tmp"
    temporary.mkdir()
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(root), marker],
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # It only sets how a signal is taken.
        preexec_fn=in_foreground,  # noqa: PLW1509
    )
    assert judge.stdout is not None
    assert judge.stdout.readline() == "started\n"
    # The first sign of life may come before the last rank has reached its own first line.
    deadline = time.monotonic() + 20
    while len(processes_with(marker)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    if len(processes_with(marker)) < 3:
        judge.kill()
        judge.communicate()
        pytest.fail("the ranks never came up")
    return judge


def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    marker = f"7001.{os.getpid()}"
    judge = start_judge(tmp_path, marker)
    # As a terminal does it: to the whole foreground group.
    os.killpg(judge.pid, signal.SIGINT)
    _out, err = judge.communicate(timeout=30)
    assert judge.returncode in (1, -signal.SIGINT)
    assert "KeyboardInterrupt" in err
    assert nothing_left(marker)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not [
        pid for pid in processes_with("grader.launch.servers.fork_server") if parent_of(pid) == judge.pid
    ]


def test_a_judge_killed_outright_takes_everything_with_it(tmp_path: Path) -> None:
    marker = f"7002.{os.getpid()}"
    judge = start_judge(tmp_path, marker)
    judge.kill()
    judge.communicate(timeout=30)
    assert nothing_left(marker)


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_what_a_killed_judge_could_not_tidy_up_the_next_one_does(own_runtime: ProcessRuntime) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale = Path(tempfile.mkdtemp(prefix=f"grader-run-{gone.pid}-"))
    (stale / "closed").mkdir()
    (stale / "closed" / "file").write_text("x")
    (stale / "closed").chmod(0)
    mine = Path(tempfile.mkdtemp(prefix=f"grader-run-{os.getpid()}-"))
    with ProcessRuntime():
        assert not stale.exists()
        assert mine.exists()
    mine.rmdir()


def test_a_warm_parent_that_was_killed_is_replaced(own_runtime: ProcessRuntime, tmp_path: Path) -> None:
    parent = own_runtime._parent
    assert parent is not None
    os.kill(parent.pid, signal.SIGKILL)
    assert run_script(own_runtime, tmp_path, "print('on the next one')").out() == "on the next one\n"


def test_a_script_that_kills_its_supervisor_is_our_failure_and_leaves_nothing(
    own_runtime: ProcessRuntime, tmp_path: Path
) -> None:
    marker = f"7003.{os.getpid()}"
    script = f"""
        import os, signal, subprocess, time
        subprocess.Popen(["sleep", "{marker}"])
        time.sleep(0.3)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    """
    with pytest.raises(InfraError, match="could not be supervised"):
        run_script(own_runtime, tmp_path, script)
    assert nothing_left(marker)
    assert run_script(own_runtime, tmp_path, "print('again')").out() == "again\n"


def test_a_script_that_kills_the_warm_parent_leaves_nothing(
    own_runtime: ProcessRuntime, tmp_path: Path
) -> None:
    marker = f"7004.{os.getpid()}"
    script = f"""
        import os, signal, subprocess, time
        subprocess.Popen(["sleep", "{marker}"])
        warm = int(open(f"/proc/{{os.getppid()}}/stat").read().rpartition(")")[2].split()[1])
        os.kill(warm, signal.SIGKILL)
        time.sleep(60)
    """
    with pytest.raises(InfraError, match="SIGKILL"):
        run_script(own_runtime, tmp_path, script)
    assert nothing_left(marker)


def test_many_runs_follow_each_other_in_one_warm_parent_and_leave_no_folder(
    own_runtime: ProcessRuntime, tmp_path: Path
) -> None:
    own_runtime.warm()
    parent, before = own_runtime._parent, folders_of_runs()
    for number in range(10):
        assert run_script(own_runtime, tmp_path, f"print({number})", nproc_per_node=1).out() == f"{number}\n"
    assert own_runtime._parent is parent
    assert folders_of_runs() <= before


def test_an_error_in_the_progress_callback_ends_the_run_and_passes_on(
    own_runtime: ProcessRuntime, tmp_path: Path
) -> None:
    marker = f"7005.{os.getpid()}"
    script = textwrap.dedent(f"import os; os.execvp('sleep', ['sleep', '{marker}'])")

    def tell(progress: Progress) -> None:
        if progress.elapsed_s > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own_runtime.run(make_job(tmp_path, "stopped", script), Workspace(tmp_path / "attempt"), tell)
    assert nothing_left(marker, 0.0)
    # The same fork server takes the next run.
    assert run_script(own_runtime, tmp_path, "print('next')").record.ending is Ending.COMPLETED


def test_outputs_beyond_the_cap_are_refused_and_the_rest_kept(
    own_runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = """
        import os
        for name in "abc":
            open(os.environ["OUTPUT_DIR"] + "/" + name, "w").write(name * 600)
    """
    ran = run_script(own_runtime, tmp_path, script, nproc_per_node=1, limits=limits_with(output_bytes=1000))
    assert len(ran.record.outputs) == 1
    assert len(ran.record.environment["refused_outputs"]) == 2


@pytest.mark.parametrize(
    ("last_line", "exit_code"),
    [
        ("pass", 0),
        ("sys.exit()", 0),
        ("sys.exit(-1)", 255),
        ("sys.exit('told on stderr')", 1),
        ("raise ValueError", 1),
    ],
)
def test_pythons_ways_to_end_have_pythons_exit_codes(
    own_runtime: ProcessRuntime, tmp_path: Path, last_line: str, exit_code: int
) -> None:
    ran = run_script(own_runtime, tmp_path, f"import sys\n{last_line}")
    assert ran.exit_codes == [exit_code, exit_code]
    assert ran.record.ending is (Ending.COMPLETED if exit_code == 0 else Ending.CRASHED)
    assert not any(rank.killed_by_judge for rank in ran.record.ranks)
