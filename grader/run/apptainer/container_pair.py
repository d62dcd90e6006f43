"""One attempt's containers and folders: those the ranks write to, and what the scorer needs.

Used once. Its folder lies in a folder of the runtime's; removing it is always possible, whatever is in it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from grader.errors import InfraError
from grader.launch.servers.container_server import FIRST_RANK_UID, NUM_RANK_UIDS
from grader.run.apptainer.command_lines import FOLDERS, ContainerOptions, scorer_command, train_command
from grader.run.apptainer.installation import Installation
from grader.run.apptainer.pipe_connection import PipeConnection

READY_S = 300.0
_REMOVE_S = 60.0


class ApptainerPair:
    """Both containers of an attempt, starting and importing torch from the moment this object exists.

    Attributes:
        key: what it was made for, its folder left out.
        folder: of the attempt.
        uid: user of its ranks inside; 0: the supervisor's.
        train, scorer: connections.
    """

    def __init__(self, installation: Installation, options: ContainerOptions, base: Path) -> None:
        self.key = options
        self.folder = base / f"attempt-{secrets.token_hex(6)}"
        self.uid = FIRST_RANK_UID + secrets.randbelow(NUM_RANK_UIDS) if installation.maps_users else 0
        self._installation = installation
        self._ready = False
        self._make_folders()
        options = replace(options, folder=self.folder)
        environment = installation.environment(self.folder)
        self._connections: list[PipeConnection] = []
        try:
            for name, command in (
                ("The container of ranks", train_command(options)),
                ("The scorer", scorer_command(options)),
            ):
                self._connections.append(PipeConnection(name, command, environment, installation.run_as()))
        except BaseException:
            self.close()
            raise
        self.train, self.scorer = self._connections

    def _make_folders(self) -> None:
        installation = self._installation
        for path in (self.folder, *(self.folder / name for name in FOLDERS)):
            path.mkdir(mode=0o700)
            if installation.changes_user:
                os.chown(path, installation.uid, installation.gid)
        if installation.maps_users:
            # Nobody but the account gets past the folder above; inside, ranks are somebody else.
            for name in ("out", "work", "jit", "tmp"):
                (self.folder / name).chmod(0o1777)
        # Mounted read-only, and filled from here before the job is given.
        (self.folder / "data").chmod(0o755)

    @property
    def usable(self) -> bool:
        """Whether both containers still run."""
        return all(connection.alive for connection in self._connections)

    def wait_ready(self) -> None:
        """Wait until a job would start at once; raises InfraError if that never happens."""
        if self._ready:
            return
        deadline = time.monotonic() + READY_S
        for connection in self._connections:
            event = connection.event(deadline)
            if event is None or event.get("event") != "ready":
                raise InfraError(f"{connection.name} did not get ready in time.{connection.last_words()}")
        self._ready = True

    def kill(self) -> None:
        """End every process of the learner's side, at once."""
        self.train.kill()

    def close(self) -> None:
        """End everything and remove the folder.

        Raises:
            InfraError: something does not go.
        """
        for connection in self._connections:
            connection.kill()
            connection.close()
        remove_attempt(self.folder, self._installation, self.key)


def remove_attempt(folder: Path, installation: Installation, options: ContainerOptions) -> None:
    """Remove an attempt's folder, whoever owns what is in it; raises InfraError where that fails."""
    if _removed(["rm", "-rf", "--", str(folder)], {}, {}, folder):
        return
    if installation.maps_users:
        # A subordinate user's files, left by a run that was cut short: only root of that world may remove them.
        command = [
            *(options.program, "exec", "--fakeroot", "--containall", "--cleanenv", "--no-home"),
            *("--mount", f"type=bind,source={folder.parent},destination=/mnt", str(options.evaluate_image)),
            *("rm", "-rf", "--", f"/mnt/{folder.name}"),
        ]
        if _removed(command, installation.environment(folder.parent), installation.run_as(), folder):
            return
    raise InfraError(f"{folder} could not be removed.")


def _removed(
    command: list[str], environment: dict[str, str], run_as: dict[str, object], folder: Path
) -> bool:
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_REMOVE_S,
            env=environment or None,
            check=False,
            **run_as,  # type: ignore[call-overload]
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return not folder.exists()
