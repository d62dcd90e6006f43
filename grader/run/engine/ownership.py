"""Who made what on the engine, so that a grader which was killed outright leaves nothing that stays.

Everything made there carries labels with its owner, and every owner holds a lock on a file for as long as it lives.
The kernel lets go of the lock when the owner ends, however it ends; whoever finds the lock free may clear away.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError

from grader.files import write_once
from grader.run.engine.client import engine_errors, gone_is_fine

STATE, OWNER, ROLE, ATTEMPT, TOKEN = (
    "grader.site",
    "grader.owner",
    "grader.role",
    "grader.attempt",
    "grader.token",
)
"""Names of labels. One is kept for each state folder: graders of another are none of our business."""
_SITE_FILE = "site"


class Ownership:
    """One living owner; its things can be told from those of the dead."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "owners"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.state = state_name(state_dir)
        self.name, self._file = self._lock()

    def labels(self, role: str, token: str) -> dict[str, str]:
        """Labels of one thing: what it is for, and the token of the pair or run it belongs to."""
        return {STATE: self.state, OWNER: self.name, ROLE: role, TOKEN: token}

    def clear_dead(self, client: DockerClient) -> int:
        """Remove everything whose owner is dead; returns how many things that were.

        Raises:
            InfraError: the engine does not let us.
        """
        alive: dict[str, bool] = {}

        def dead(labels: dict[str, str]) -> bool:
            owner = labels.get(OWNER, "")
            if owner and owner not in alive:
                alive[owner] = self.lives(owner)
            return bool(owner) and not alive[owner]

        removed = clear(client, self.state, dead)
        for owner, lives in alive.items():
            if not lives:
                (self._folder / owner).unlink(missing_ok=True)
        self._forget_dead_files()
        return removed

    def close(self) -> None:
        """Owner no more: what is left belongs to the dead."""
        (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._file)

    def _lock(self) -> tuple[str, int]:
        while True:
            path = self._folder / secrets.token_hex(8)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(file, fcntl.LOCK_EX)
            # Between making and locking it somebody may have taken it for a dead one's.
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(file).st_ino == path.stat().st_ino:
                    return path.name, file
            os.close(file)

    def lives(self, owner: str) -> bool:
        """Whether an owner, ourselves included, is still there."""
        if owner == self.name:
            return True
        try:
            file = os.open(self._folder / owner, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _forget_dead_files(self) -> None:
        for path in self._folder.iterdir():
            if not self.lives(path.name):
                path.unlink(missing_ok=True)


def state_name(state_dir: Path) -> str:
    """The name of a state folder, which no other has: neither a copy of it, nor one at the same path elsewhere.

    Workers in containers all keep their state at one path, on one engine; none may take another volume's for dead.
    """
    file = state_dir / _SITE_FILE
    if not file.is_file():
        # Of several who make it at once, the first is believed by all.
        state_dir.mkdir(parents=True, exist_ok=True)
        write_once(file, secrets.token_hex(16))
    seed = f"{state_dir.resolve()}\n{file.read_text(encoding='ascii')}"
    return hashlib.sha256(seed.encode()).hexdigest()[:16]


def clear(client: DockerClient, state: str, dead: Callable[[dict[str, str]], bool]) -> int:
    """Remove a state folder's containers, networks and volumes that `dead` says yes to, by their labels."""
    filters = {"label": [f"{STATE}={state}", OWNER]}
    num_removed = 0
    with engine_errors("What a killed grader left could not be cleared away"):
        for container in client.api.containers(all=True, filters=filters):
            if dead(container["Labels"] or {}):
                with gone_is_fine():
                    client.api.remove_container(container["Id"], force=True, v=True)
                    num_removed += 1
        for network in client.api.networks(filters=filters):
            if dead(network["Labels"] or {}):
                with gone_is_fine():
                    client.api.remove_network(network["Id"])
                    num_removed += 1
        for volume in client.api.volumes(filters=filters)["Volumes"] or ():
            if dead(volume["Labels"] or {}):
                # In use by somebody else's container after all: that one's owner will see to it.
                with contextlib.suppress(APIError):
                    client.api.remove_volume(volume["Name"])
                    num_removed += 1
    return num_removed
