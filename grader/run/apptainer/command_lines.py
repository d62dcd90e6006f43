"""The command lines of both containers, in one place to be read: what a learner's code may do, and what the scorer may.

Pure: builds arguments, starts nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grader.launch.bounds import most_processes
from grader.launch.ranks.syscalls import HIDE_CLONE3
from grader.launch.servers.container_server import DATA, OUT, PREPARED, RECORD, SCRATCH, WORK

SECCOMP, HOSTS = "seccomp.json", "hosts"
"""Files that containers are made with, in a folder that their account may read."""
HOSTS_TEXT = "127.0.0.1 localhost job scorer\n::1 localhost\n::ffff:127.0.0.1 localhost\n"
_PYTHON = "/opt/venv/bin/python"
MOST_OF_ACCOUNT = 4096
"""Where ranks have the account's own user, an older kernel counts everything that the account runs."""
_SUPERVISOR_BYTES = 768 << 20


@dataclass(frozen=True, slots=True)
class ContainerOptions:
    """What the command lines of one attempt are made of.

    Attributes:
        program: apptainer's path.
        train_image, evaluate_image: files; settings: folder with `seccomp.json` and `hosts`.
        folder: the attempt's own, with `out`, `record`, `work`, `jit`, `tmp`, `data` and `scorer`.
        data: folder of what all runs on the data share; visible, hidden: of both sides for the scorer. None: nothing.
        memory_bytes: limit of the ranks.
        maps_users: users inside are mapped to the account's subordinate users.
        limits_groups: this account may limit control groups.
        gpus: UUIDs of devices.
    """

    program: str
    train_image: Path
    evaluate_image: Path
    settings: Path
    folder: Path
    data: Path | None
    visible: Path | None
    hidden: Path | None
    memory_bytes: int
    maps_users: bool
    limits_groups: bool
    gpus: tuple[str, ...] = ()


def train_command(options: ContainerOptions) -> list[str]:
    """Container A: the learner's code under the supervisor."""
    binds = [(options.folder / name, inside, "rw") for name, inside in _FOLDERS]
    binds.append((options.folder / "data", DATA, "ro"))
    if options.data is not None:
        binds.append((options.data, PREPARED, "ro"))
    flags = _rights(options)
    if options.gpus:
        # All devices of the machine: which of them ranks see, their environment says.
        flags.append("--nv")
    if options.limits_groups:
        flags += _limits(options)
    return _command(
        options,
        "job",
        binds,
        flags,
        options.train_image,
        ["-m", "grader.launch.servers.container_server", HIDE_CLONE3],
    )


def scorer_command(options: ContainerOptions) -> list[str]:
    """Container B: reads what the run left, has the labels, runs nothing of the learner's."""
    binds = [
        (options.folder / "out", "/out", "ro"),
        (options.folder / "record", "/record/0", "ro"),
        (options.folder / "scorer", "/tmp", "rw"),
    ]
    if options.visible is not None:
        binds.append((options.visible, "/visible", "ro"))
    if options.hidden is not None:
        binds.append((options.hidden, "/hidden", "ro"))
    server = ["-m", "grader.evaluate.scorer.container_server", HIDE_CLONE3]
    return _command(options, "scorer", binds, [], options.evaluate_image, server)


def trial_command(options: ContainerOptions) -> list[str]:
    """A container that has the limits of the first and does nothing: shows whether they are allowed here."""
    return _command(
        options, "job", [], [*_rights(options), *_limits(options)], options.train_image, ["-c", "pass"]
    )


def _rights(options: ContainerOptions) -> list[str]:
    # Root of a world of its own, so that ranks can become somebody else.
    return ["--fakeroot"] if options.maps_users else []


def _limits(options: ContainerOptions) -> list[str]:
    memory = str(options.memory_bytes + _SUPERVISOR_BYTES)
    return [
        "--memory",
        memory,
        "--memory-swap",
        memory,
        "--pids-limit",
        str(most_processes(len(options.gpus))),
    ]


_FOLDERS = (("out", OUT), ("record", RECORD), ("work", WORK), ("jit", SCRATCH), ("tmp", "/tmp"))
FOLDERS = (*(name for name, _inside in _FOLDERS), "data", "scorer")
"""Folders of an attempt."""


def _command(
    options: ContainerOptions,
    hostname: str,
    binds: list[tuple[Path, str, str]],
    flags: list[str],
    image: Path,
    python: list[str],
) -> list[str]:
    # Where devices are handed in, libraries look them up in /sys.
    left_out = "home,tmp,hostfs,bind-paths" + ("" if options.gpus else ",sys")
    mounts = []
    # A name service is out of reach: who the machine itself is must stand in a file.
    binds.append((options.settings / HOSTS, "/etc/hosts", "ro"))
    for source, inside, mode in binds:
        mount = f"type=bind,source={source},destination={inside}" + (",ro" if mode == "ro" else "")
        mounts += ["--mount", mount]
    return [
        *(options.program, "exec"),
        *("--containall", "--cleanenv", "--no-home", "--no-eval", "--no-mount", left_out),
        *("--net", "--network", "none", "--uts", "--hostname", hostname),
        *("--security", f"seccomp:{options.settings / SECCOMP}", "--pwd", "/"),
        *("--env", "OMP_NUM_THREADS=1", "--env", "PYTORCH_NVML_BASED_CUDA_CHECK=1"),
        *mounts,
        *flags,
        str(image),
        *(_PYTHON, "-u", *python),
    ]


def seccomp_text(profile: str) -> str:
    """Our profile as apptainer takes it.

    Apptainer knows one error for all that it refuses, and starts threads of its own behind the filter, whose C library
    gives up when `clone3` is forbidden. So that call is let through here and answered by the container's first process,
    which hides it before anything of a learner's exists.

    Args:
        profile: text of the profile for the container engine.

    Raises:
        ValueError: the profile answers another call with an error of its own; nobody here would.
    """
    document = json.loads(profile)
    for rule in document["syscalls"]:
        if rule["action"] != "SCMP_ACT_ALLOW":
            if rule["names"] != ["clone3"]:
                raise ValueError(f"no container answers {', '.join(rule['names'])}")
            rule["action"] = "SCMP_ACT_ALLOW"
            del rule["errnoRet"]
    return json.dumps(document)
