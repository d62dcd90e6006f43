"""What a run could leave on this machine, looked at before and after.

Other work may go on here at the same time: of what is new, only that counts which bears a mark of ours, namely our
state folder as site, a learner's user, a rank's environment, a name that attacks write.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from grader.run.engine.ownership import STATE, state_name
from grader.settings import settings

_RANK_UIDS = range(19_998, 20_000 + 4_096)
_PATIENCE_S = 15.0
_READER = "-m grader.readers"
"""Reads texts for this process, and waits for the next one: none of a learner's."""


class Host:
    """The machine at the moment of its making; `temporary` is where our own processes put temporary files."""

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self._before = self._look()

    def left(self) -> dict[str, list[str]]:
        """What is there now and was not before, by kind; {} is how it should be. Waits a little for what is going."""
        deadline = time.monotonic() + _PATIENCE_S
        while (new := self.new()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return new

    def new(self) -> dict[str, list[str]]:
        """The same at this very moment."""
        now = self._look()
        added = {kind: sorted(found - self._before[kind]) for kind, found in now.items()}
        return {kind: found for kind, found in added.items() if found}

    def _look(self) -> dict[str, set[str]]:
        return {
            "processes": _processes(),
            "temporary files": {str(p) for p in self._temporary.iterdir()},
            "files of attacks": _files(),
            **_engine(),
        }


def _processes() -> set[str]:
    """Processes of ranks: by user, by environment; and children of ours. Not those of somebody else's containers."""
    found = set()
    foreign = _foreign_containers()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            rank = b"TORCHELASTIC_RUN_ID=" in (folder / "environ").read_bytes()
            uid = folder.stat().st_uid
            group = (folder / "cgroup").read_text()
        except OSError:
            continue
        if any(container in group for container in foreign):
            continue
        ours = int(parent) == os.getpid() or uid in _RANK_UIDS or (rank and _of_the_suite(folder))
        if ours and state not in ("Z", "X") and _READER not in command:
            found.add(f"{folder.name} {command[:120]}")
    return found


def _foreign_containers() -> set[str]:
    if shutil.which("docker") is None:
        return set()
    listed = ("ps", "--no-trunc", "--quiet")
    return set(_docker(*listed)) - set(_docker(*listed, "--filter", _ours()))


def _of_the_suite(folder: Path) -> bool:
    try:
        environment = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    run = next((v for v in environment if v.startswith(b"TORCHELASTIC_RUN_ID=")), b"")
    return re.search(rb"\d\d[a-z]?_[a-z]", run.replace(b"-", b"_")) is not None


def _files() -> set[str]:
    places = (Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"))
    return {str(p) for place in places if place.is_dir() for p in place.glob("grader-trust-*")}


def _engine() -> dict[str, set[str]]:
    """Containers, volumes and networks of graders with our state folder, and mounts of such containers."""
    if shutil.which("docker") is None:
        return {}
    commands = {
        "containers": ("ps", "--all", "--format", "{{.Names}}"),
        "volumes": ("volume", "ls", "--format", "{{.Name}}"),
        "networks": ("network", "ls", "--format", "{{.Name}}"),
    }
    found = {kind: set(_docker(*command, "--filter", _ours())) for kind, command in commands.items()}
    # Prepared data is kept on purpose, for all attempts to come.
    found["volumes"] = {name for name in found["volumes"] if not name.startswith("grader-data-")}
    names = found["containers"] | found["volumes"]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found["mounts"] = {line for line in mounts if any(name in line for name in names)}
    return found


def _ours() -> str:
    # What the next start of a grader with this folder would clear away, by the same mark.
    site = state_name(settings().state_dir)
    return f"label={STATE}={site}"


def _docker(*command: str) -> list[str]:
    done = subprocess.run(["docker", *command], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split()
