"""What this machine allows containers without an engine: the program, whose they are, which users they can have inside.

Looks and starts nothing that stays; a reason why not is a sentence for people.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.launch.servers.container_server import FIRST_RANK_UID, NUM_RANK_UIDS
from grader.settings import settings

_PROGRAMS = ("apptainer", "singularity")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VERSION_S = 5.0
_TRIAL_S = 30.0
_MAPPERS = ("newuidmap", "newgidmap")


@dataclass(frozen=True, slots=True)
class Installation:
    """How containers are made here.

    Attributes:
        program: path of apptainer; version: as it tells.
        user: account that containers belong to; uid, gid: its numbers.
        changes_user: the grader is root and becomes that account for every container.
        maps_users: the account has subordinate users, so that ranks can be another user than their supervisor.
    """

    program: str
    version: str
    user: str
    uid: int
    gid: int
    changes_user: bool
    maps_users: bool

    def gap(self, *, devices: bool) -> str:
        """What protects less here than in the docker runtime; a sentence or more for reports.

        Args:
            devices: the run had GPUs.
        """
        gaps = []
        if not self.maps_users:
            gaps.append(
                f"Ranks had the same user as their supervisor ({self.user} has no subordinate users on this machine), "
                "so a script could have ended it or written into its records."
            )
        gaps.append(
            "The container shared the machine's disk and memory: what a script writes is capped per file and when it "
            "is collected, and its memory is watched."
        )
        if devices:
            gaps.append("Which GPUs it had was told to it, not enforced.")
        return " ".join(gaps)

    def may_read(self, file: Path) -> bool:
        """Whether the account can open a file, as far as permissions say."""
        if not self.changes_user:
            return os.access(file, os.R_OK)
        path = file.resolve()
        needed = [(path, stat.S_IROTH), *((above, stat.S_IXOTH) for above in path.parents)]
        return all(
            status.st_mode & bit or (status.st_uid == self.uid and status.st_mode & bit << 6)
            for status, bit in ((one.stat(), bit) for one, bit in needed)
        )

    def run_as(self) -> dict[str, object]:
        """Arguments of `subprocess` that make a command the account's."""
        if not self.changes_user:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def environment(self, home: Path) -> dict[str, str]:
        """All that apptainer itself is told; `home` keeps it away from anybody's settings."""
        return {"PATH": _path(), "HOME": str(home), "LANG": "C.UTF-8", "APPTAINER_MESSAGELEVEL": "1"}


def find_installation() -> Installation | str:
    """How containers are made here, or why they cannot be; takes milliseconds once the program was asked."""
    program = find_program()
    if program is None:
        return (
            "apptainer is not installed; a site's own module or package brings it (`apt install apptainer`)"
        )
    version = _version(program)
    if not version:
        return f"{program} does not answer"
    uid = os.getuid()
    name = settings().apptainer_user
    if uid == 0 and not name:
        return (
            "the grader runs as root, and learners' code must not: run it as an ordinary user, "
            "or name one in GRADER_APPTAINER_USER"
        )
    try:
        account = pwd.getpwnam(name) if uid == 0 else pwd.getpwuid(uid)
    except KeyError:
        return f"there is no user {name or uid} on this machine"
    if account.pw_uid == 0:
        return "GRADER_APPTAINER_USER names root; learners' code must not be root"
    return Installation(
        program=program,
        version=version,
        user=account.pw_name,
        uid=account.pw_uid,
        gid=account.pw_gid,
        changes_user=uid == 0,
        maps_users=_maps_users(account.pw_name, account.pw_uid),
    )


def find_program() -> str | None:
    """Path of apptainer, or of the name it had before."""
    return next(filter(None, (shutil.which(name, path=_path()) for name in _PROGRAMS)), None)


def limits_groups(installation: Installation, command: list[str], environment: dict[str, str]) -> bool:
    """Whether this account may limit a control group: tried with a whole command; only the second version lets it."""
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return False
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_S,
            env=environment,
            check=False,
            **installation.run_as(),  # type: ignore[call-overload]
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(done.returncode == 0)


def _maps_users(name: str, uid: int) -> bool:
    if not all(shutil.which(mapper, path=_path()) for mapper in _MAPPERS):
        return False
    return all(_most_mapped(Path("/etc", file), name, uid) >= _NEEDED for file in ("subuid", "subgid"))


_NEEDED = FIRST_RANK_UID + NUM_RANK_UIDS


def _most_mapped(table: Path, name: str, uid: int) -> int:
    """Size of the largest range that an account has in a table of lines `account:first:number`."""
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    parts = [line.split(":") for line in lines]
    mine = (part for part in parts if len(part) == 3 and part[0] in (name, str(uid)) and part[2].isdigit())
    return max((int(part[2]) for part in mine), default=0)


@cache
def _version(program: str) -> str:
    try:
        done = subprocess.run(
            [program, "version"], capture_output=True, text=True, timeout=_VERSION_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _path() -> str:
    # Tools that change users or mount things live where an ordinary user's path often does not lead.
    return f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}"
