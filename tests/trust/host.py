"""What a run could leave on this machine, looked at before and after.

Other work may go on here at the same time: of what is new, only that counts which bears a mark of ours, namely our
process as owner, a learner's user, a rank's environment, a name that attacks write.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

_RANK_UIDS = range(19_998, 20_000 + 4_096)
_PATIENCE_S = 15.0


class Host:
    """The machine at the moment of its making; `temporary` is where our own processes put temporary files."""

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self._before = self._look()

    def left(self) -> dict[str, list[str]]:
        """What is there now and was not before, by kind; {} is how it should be. Waits a little for what is going."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            now = self._look()
            new = {kind: sorted(found - self._before[kind]) for kind, found in now.items()}
            if not any(new.values()) or time.monotonic() > deadline:
                return {kind: found for kind, found in new.items() if found}
            time.sleep(0.2)

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
        if ours and state not in ("Z", "X"):
            found.add(f"{folder.name} {command[:120]}")
    return found


def _foreign_containers() -> set[str]:
    if shutil.which("docker") is None:
        return set()
    command = ("docker", "ps", "--no-trunc", "--format", "{{.ID}}\t{{.Labels}}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = [line.partition("\t") for line in done.stdout.splitlines()]
    return {name for name, _tab, labels in lines if f":{os.getpid()}:" not in labels}


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
    """Containers, volumes and networks that our own process owns, and mounts of such containers."""
    if shutil.which("docker") is None:
        return {}
    mine = f":{os.getpid()}:"
    found: dict[str, set[str]] = {}
    lists = {
        "containers": (
            "ps",
            "--all",
            "--filter",
            "label=grader.owner",
            "--format",
            "{{.Names}}\t{{.Labels}}",
        ),
        "volumes": ("volume", "ls", "--filter", "label=grader.owner", "--format", "{{.Name}}\t{{.Labels}}"),
        "networks": ("network", "ls", "--filter", "label=grader.owner", "--format", "{{.Name}}\t{{.Labels}}"),
    }
    for kind, command in lists.items():
        done = subprocess.run(["docker", *command], capture_output=True, text=True, timeout=60, check=False)
        lines = [line.partition("\t") for line in done.stdout.splitlines()]
        found[kind] = {name for name, _tab, labels in lines if mine in labels}
    names = found["containers"] | found["volumes"]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found["mounts"] = {line for line in mounts if any(name in line for name in names)}
    return found
