"""A real Slurm of several nodes on this machine: munged, slurmctld and one slurmd a node.

It has a folder and ports of its own. Nodes have GPUs by name alone (devices like /dev/null), and more cores than the
machine: Slurm counts them, and binds nobody to any. Its own part is real: queue, time limits, signals, nodes that die.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from tests.ports import free_port
from tests.worker.rig import wait_until

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "munged", "mungekey")
GPUS_PER_NODE = 4
CPUS_PER_NODE = 16
_NULL = os.makedev(1, 3)


class SlurmCluster:
    """One cluster with nodes n1, n2, …; `close` leaves neither a process nor a file."""

    def __init__(self, num_nodes: int = 2) -> None:
        lacking = [name for name in PROGRAMS if _program(name) is None]
        if lacking:
            pytest.skip(f"no {', '.join(lacking)} found; `apt-get install slurm-wlm munge` brings them")
        if os.geteuid() != 0:
            pytest.skip("a Slurm of its own is started by root alone: its nodes have devices")
        # Short, because nodes listen on sockets below it.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.nodes = tuple(f"n{number}" for number in range(1, num_nodes + 1))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_files()

    @property
    def env(self) -> dict[str, str]:
        """What makes Slurm's commands talk to this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Start everything, and wait until all nodes are idle."""
        munge = self.folder / "munge"
        self._call("mungekey", "--create", f"--keyfile={munge / 'key'}")
        files = [f"--{what}-file={munge / what}" for what in ("key", "pid", "log", "seed")]
        self._start("munged", "--foreground", "--force", f"--socket={munge / 'socket'}", *files)
        wait_until((munge / "socket").exists, "munged listens", 30)
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        wait_until(self._all_idle, f"nodes are idle: {self.logs()}", 60)

    def start_controller(self) -> None:
        """Start slurmctld, with what it knew before it was ended."""
        self._start("slurmctld", "-D")

    def start_node(self, node: str) -> None:
        """Start one node's slurmd."""
        self._start(node, "-D", "-N", node, program="slurmd")

    def stop(self, name: str) -> None:
        """End slurmctld, or one node's slurmd alone."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(30)

    def kill_node(self, node: str) -> None:
        """What a power cut does: slurmd and all that its jobs started are gone at once."""
        slurmd = self.processes.pop(node)
        mark = f"SLURMD_NODENAME={node}"
        steps = f"{self.folder}/spool-{node}"
        there = [
            one
            for one in self._ours()
            if one.pid == slurmd.pid or mark in _environ(one) or self._watches(one, steps)
        ]
        # All stand still before the first is killed: nobody is left to tell the controller of another's end.
        for what in (psutil.Process.suspend, psutil.Process.kill):
            for process in there:
                with contextlib.suppress(psutil.NoSuchProcess):
                    what(process)
        slurmd.wait(30)

    def close(self) -> None:
        """End every process and remove every file."""
        for process in self.processes.values():
            process.kill()
            process.wait(30)
        left = self._ours()
        for one in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        _gone, alive = psutil.wait_procs(left, timeout=20)
        shutil.rmtree(self.folder)
        assert not alive, f"left of Slurm: {alive}"

    def submit(self, script: str, *options: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Submit a script, which runs and logs in the cluster's folder."""
        path = self.folder / "script"
        path.write_text(script)
        self._call("sbatch", *options, str(path), *arguments, env=env)

    def wait_until_all(self, state: str) -> None:
        """Wait until all jobs have come to this state."""
        wait_until(lambda: set(self.states().values()) == {state}, f"jobs are {state}: {self.logs()}")

    def jobs(self, form: str = "%i %T") -> list[list[str]]:
        """All jobs that Slurm still remembers, a list of words each."""
        text = self._call("squeue", "--noheader", "--states=all", f"--format={form}")
        return [line.split() for line in text.splitlines()]

    def states(self) -> dict[str, str]:
        """The state of each job by its number."""
        return {words[0]: words[1] for words in self.jobs()}

    def cancel(self, job_id: str) -> None:
        """What a person or a job of higher priority does to a job."""
        self._call("scancel", job_id)

    def shorten(self, job_id: str, minutes: int) -> None:
        """Give a job that runs less time than it was promised."""
        self._call("scontrol", "update", f"JobId={job_id}", f"TimeLimit={minutes}")

    def pause(self) -> None:
        """Let no job start from now on."""
        self._call("scontrol", "update", "PartitionName=main", "State=DOWN")

    def mark_down(self, node: str) -> None:
        """What a health check tells Slurm of a node that is dead, which by itself would take a while to notice."""
        self._call("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=dead")

    def logs(self) -> str:
        """The last words of all daemons."""
        texts = [f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log"))]
        return "\n".join(texts)

    @staticmethod
    def _watches(process: psutil.Process, folder: str) -> bool:
        """Whether this is the daemon beside a job of the node whose folder this is: its child runs from there."""
        with contextlib.suppress(psutil.Error):
            return any(folder in " ".join(child.cmdline()) for child in process.children()) and (
                process.name() == "slurmstepd"
            )
        return False

    def _all_idle(self) -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            seen = self._call("sinfo", "--noheader", "--Node", "--format=%t").split()
            return len(seen) == len(self.nodes) and set(seen) == {"idle"}
        return False

    def _ours(self) -> list[psutil.Process]:
        mark = f"SLURM_CONF={self.env['SLURM_CONF']}"
        return [one for one in psutil.process_iter() if one.pid != os.getpid() and mark in _environ(one)]

    def _write_files(self) -> None:
        folder = self.folder
        for name in ("munge", "state", "gpus", *(f"spool-{node}" for node in self.nodes)):
            (folder / name).mkdir(mode=0o700)
        for number in range(GPUS_PER_NODE):
            os.mknod(folder / "gpus" / f"nvidia{number}", 0o666 | stat.S_IFCHR, _NULL)
        hardware = f"CPUs={CPUS_PER_NODE} RealMemory=4000 Gres=gpu:{GPUS_PER_NODE}"
        nodes = [
            f"NodeName={node} NodeHostname=localhost Port={free_port()} {hardware}" for node in self.nodes
        ]
        (folder / "slurm.conf").write_text(
            "\n".join(
                [*_lines(folder), *nodes, f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES"]
            )
            + "\n"
        )
        devices = f"{folder}/gpus/nvidia[0-{GPUS_PER_NODE - 1}]"
        (folder / "gres.conf").write_text(f"NodeName={','.join(self.nodes)} Name=gpu File={devices}\n")

    def _start(self, name: str, *arguments: str, program: str = "") -> None:
        path = _program(program or name)
        assert path is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [path, *arguments],
                cwd=self.folder,
                env=os.environ | self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _call(self, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        path = _program(name)
        assert path is not None
        done = subprocess.run(
            [path, *arguments],
            cwd=self.folder,
            env=os.environ | self.env | dict(env or {}),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return done.stdout


def _environ(process: psutil.Process) -> list[str]:
    # psutil's own reader stops at an empty entry, and slurmstepd begins with one.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process.pid}/environ").read_text(errors="replace").split("\0")
    return []


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _lines(folder: Path) -> Sequence[str]:
    return (
        "ClusterName=tests",
        "SlurmctldHost=localhost",
        f"SlurmctldPort={free_port()}",
        "SlurmUser=root",
        "SlurmdUser=root",
        f"AuthInfo=socket={folder}/munge/socket",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        # Nothing here needs control groups, which a machine in a container does not hand out.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",
        "GresTypes=gpu",
        "ReturnToService=2",
        "SlurmdTimeout=10",
        "KillWait=30",
        "SchedulerParameters=sched_interval=1,batch_sched_delay=0",
    )
