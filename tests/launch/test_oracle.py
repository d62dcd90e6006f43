"""A forked rank and one that the real command started are the same to a script: the command is the oracle."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from grader.launch.ranks.environment import job_environment
from grader.launch.spec import LaunchSpec
from tests.launch.conftest import Launch
from tests.ports import free_port

FACTS = """
import atexit, gc, inspect, json, multiprocessing, os, pickle, resource, signal, sys, threading, time, warnings
import torch, torch.distributed as dist

class Thing:
    pass

facts = {
    "environment": dict(os.environ),
    "path": sys.path,
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "executable": sys.executable,
    "flags": str(sys.flags),
    "name": __name__,
    "file": __file__,
    "globals": sorted(k for k in globals() if k.startswith("__")),
    "spec": repr(__spec__),
    "loader": type(__loader__).__name__,
    "builtins": type(__builtins__).__name__,
    "main": sys.modules["__main__"].Thing is Thing,
    "pickles_as": pickle.loads(pickle.dumps(Thing)).__module__,
    "source": inspect.getsource(Thing),
    "cwd": os.getcwd(),
    "leader": os.getsid(0) == os.getpid() == os.getpgid(0),
    "descriptors": [d for d in sorted(map(int, os.listdir("/proc/self/fd"))) if d < 1000][:-1],
    "streams": [[s.name, s.encoding, s.errors, s.write_through, s.line_buffering, s.mode, type(s.buffer).__name__]
                for s in (sys.stdout, sys.stderr)],
    "stdin": sys.stdin.read(),
    "handlers": [str(signal.getsignal(s)) for s in range(1, 32)],
    "blocked": str(signal.pthread_sigmask(0, ())),
    "threads": [t.name for t in threading.enumerate()],
    "tasks": len(os.listdir("/proc/self/task")),
    "gc": [gc.isenabled(), gc.get_threshold()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    "recursion": sys.getrecursionlimit(),
    "start_method": multiprocessing.get_start_method(),
    "num_threads": torch.get_num_threads(),
    "dtype": str(torch.get_default_dtype()),
    "grad": torch.is_grad_enabled(),
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "torchelastic": dist.is_torchelastic_launched(),
    "umask": os.umask(0o22),
}
dist.init_process_group("gloo")
zero = torch.tensor([os.getpid() if os.environ["RANK"] == "0" else 0])
dist.all_reduce(zero)
facts["backend"] = [dist.get_backend(), dist.get_rank(), dist.get_world_size()]
dist.destroy_process_group()
with open(os.environ["OUTPUT_DIR"] + f"/facts{os.environ['RANK']}.json", "w") as file:
    json.dump(facts, file)
if os.environ["RANK"] == "1":
    # torchrun ends whoever is still there when a rank fails: let rank 0 go first.
    try:
        while open(f"/proc/{zero.item()}/stat").read().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.02)
    except FileNotFoundError:
        pass
    sys.exit(3)
"""
# Different in any two runs: where a port or a run id came out, and the launcher's own folder for error files.
VARYING = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}


def plain_command(folder: Path, script: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a script in folders of the same names, by a command that is not ours."""
    for name in ("submission", "data", "output", "scratch", "record"):
        (folder / name).mkdir(parents=True)
    (folder / "submission" / "train.py").write_text(textwrap.dedent(script))
    names = ("submission", "data", "output", "scratch", "record")
    folders: dict[str, Any] = {f"{name}_dir": str(folder / name) for name in names}
    spec = LaunchSpec(
        attempt="plain",
        launcher="torchrun",
        nproc_per_node=2,
        entry_point="train.py",
        argv=(),
        wall_s=60,
        **folders,
    )
    (folder / "scratch" / "tmp").mkdir()
    return subprocess.run(
        command,
        cwd=spec.submission_dir,
        env=job_environment(spec),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
    )


def facts_of(folder: Path, rank: int) -> dict[str, Any]:
    """What rank found, with the run's own folder called `RUN`."""
    text = (folder / "output" / f"facts{rank}.json").read_text()
    facts: dict[str, Any] = json.loads(text.replace(str(folder), "RUN"))
    for name in VARYING:
        assert facts["environment"].pop(name)
    return facts


def test_a_script_finds_the_same_under_torchrun_and_forked(launch: Launch, tmp_path: Path) -> None:
    forked = launch(FACTS, argv=("--lr", "0.1"))
    assert [rank.exit_code for rank in forked.record.ranks] == [0, 3], forked.err()
    oracle = tmp_path / "oracle"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master-addr=127.0.0.1"]
    plain = plain_command(oracle, FACTS, *command, f"--master-port={free_port()}", "train.py", "--lr", "0.1")
    assert re.search(r"exitcode\s*: 3", plain.stderr), plain.stderr
    for rank in (0, 1):
        ours, theirs = facts_of(forked.folder, rank), facts_of(oracle, rank)
        # Same names, same order of importance: a difference here is a difference that a learner could meet.
        assert {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]} == {}


def test_the_torchrun_launcher_with_the_bootstrap_shows_a_script_the_same(launch: Launch) -> None:
    forked, by_command = launch(FACTS), launch(FACTS, launcher="torchrun", probe=True)
    assert [rank.exit_code for rank in by_command.record.ranks] == [0, 3], by_command.err()
    for rank in (0, 1):
        ours, theirs = facts_of(forked.folder, rank), facts_of(by_command.folder, rank)
        # The probe may hook what it likes; what a script can find without looking for the probe stays.
        different = {key for key in ours if ours[key] != theirs[key]}
        assert different <= {"tasks"}, {key: (ours[key], theirs[key]) for key in different}


ENDS = {
    "uncaught": """
        def outer(x):
            return inner(x) + 1

        def inner(x):
            return [][x]

        print("before")
        outer(1)
    """,
    "chained": """
        def parse(text):
            try:
                return int(text)
            except ValueError as error:
                raise RuntimeError("no number") from error
        try:
            parse("x")
        except RuntimeError:
            {}["key"]
    """,
    "syntax error": "print('never')\nfor x in range(3)\n    pass\n",
    "indentation": "if True:\nprint(1)\n",
    "not utf-8 declared": "# coding: latin-1\nprint('caf\u00e9')\n",
    "exit with text": "import sys; sys.exit('a text on stderr')",
    "exit with a number": "raise SystemExit(7)",
    "exit with a float": "raise SystemExit(2.5)",
    "exit with a big number": "import sys; sys.exit(256 + 4)",
    "exit in a handler": "import atexit, sys\natexit.register(lambda: sys.exit(5))\nprint('x')\n",
    "interrupted": "raise KeyboardInterrupt",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError('two')])",
    "own hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print("mine", kind.__name__, trace.tb_lineno, file=sys.stderr)
        1 / 0
    """,
    "broken hook": """
        import sys
        def hook(kind, error, trace):
            raise ValueError("hook")
        sys.excepthook = hook
        1 / 0
    """,
    "handlers and threads": """
        import atexit, threading, time
        atexit.register(print, "first registered")
        atexit.register(print, "last registered")
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        raise ValueError("still, all of it happens")
    """,
    "failing thread": """
        import threading
        def work():
            raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        print("survived")
    """,
    "failing handler": "import atexit\natexit.register(lambda: 1 / 0)\nprint('x')\n",
    "objects at the end": """
        class Last:
            def __del__(self):
                print("gone", flush=True)
        kept = Last()
    """,
    "unwritten file": """
        import os
        file = open(os.environ["OUTPUT_DIR"] + "/x", "w")
        file.write("buffered")
    """,
    "closed stdout": "import sys\nprint('x')\nsys.stdout.close()\n",
    "deep recursion": "def f(n):\n    return f(n + 1)\nf(0)\n",
    "warning": "import warnings\nwarnings.warn('careful')\n",
    "forked child": """
        import os
        if os.fork() == 0:
            raise SystemExit(3)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "ended by a signal": "import os, signal\nprint('x')\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "executes another": "import os\nos.execvp('echo', ['echo', 'another program'])\n",
}


def told(stderr: str) -> str:
    """Standard error without addresses, and without how deep the stack was when Python stopped counting repetitions."""
    return re.sub(r"repeated \d+ more times", "repeated", re.sub(r"0x[0-9a-f]+", "0x", stderr))


@pytest.mark.parametrize("name", ENDS)
def test_output_tracebacks_and_exit_codes_are_pythons_own(launch: Launch, tmp_path: Path, name: str) -> None:
    oracle = tmp_path / "oracle"
    # torchrun starts its ranks as `python -u script`; without torch's import that takes a twentieth of a second.
    theirs = plain_command(oracle, ENDS[name], sys.executable, "-u", "train.py")
    ours = launch(ENDS[name], nproc_per_node=1)
    where = str(ours.folder)
    assert ours.out() == theirs.stdout
    assert told(ours.err().replace(where, str(oracle))) == told(theirs.stderr)
    assert ours.record.ranks[0].exit_code == theirs.returncode
    left = {path.name: path.read_text() for path in (oracle / "output").iterdir()}
    assert {path.name: path.read_text() for path in (ours.folder / "output").iterdir()} == left


@pytest.mark.parametrize("launcher", ["fork", "torchrun"])
def test_a_script_is_told_which_size_to_train(launch: Launch, launcher: str) -> None:
    ran = launch("import os; print(os.environ['MODEL_SIZE'])", launcher=launcher, model_size="large")
    assert [ran.out(rank).split() for rank in (0, 1)] == [["large"], ["large"]]


def test_the_warm_parent_itself_knows_no_variable_of_the_judge(launch: Launch) -> None:
    # A rank can read its ancestors' environments where both have the same user.
    ran = launch(
        "import os; print(open(f'/proc/{os.getppid()}/environ').read().split(chr(0)))", nproc_per_node=1
    )
    names = {entry.partition("=")[0] for entry in re.findall(r"'([^']*)'", ran.out()) if entry}
    allowed = {"PATH", "LANG", "USER", "OMP_NUM_THREADS", "PYTORCH_NVML_BASED_CUDA_CHECK"}
    assert names <= allowed | {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"}
    assert "HOME" in os.environ
