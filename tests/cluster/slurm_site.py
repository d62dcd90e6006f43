"""A site whose workers `grader slurm feed` submits to a real Slurm; they judge in the process runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from sqlalchemy import update

from grader.store.tables import AttemptRow
from tests.cluster.slurm import SlurmCluster
from tests.worker.rig import Rig

SLEEPER = "sleep 600 #"
"""In the place of the grader: a job that only stands there."""


@dataclass
class SlurmSite:
    """One site and its cluster."""

    rig: Rig
    cluster: SlurmCluster

    def feed(self, *options: str) -> None:
        """Start feeding, with a look every second."""
        self.rig.start("feed", *self._command("--every", "1", *options), **self._env)

    def look(self, *options: str, code: int = 0) -> dict[str, Any]:
        """One look; what it says as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "grader", *self._command("--once", "--json", *options)],
            cwd=self.rig.folder,
            env=self.rig.env(**self._env),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def wanting(self, need: str, number: int = 1) -> list[int]:
        """Attempts that wait for such devices."""
        made = [self.rig.hand_in() for _ in range(number)]
        with self.rig.store.write() as connection:
            connection.execute(update(AttemptRow).where(AttemptRow.id.in_(made)).values(need=need))
        return made

    def logs(self) -> str:
        """The last words of everybody."""
        texts = [
            path.read_text(errors="replace")[-4000:] for path in self.rig.folder.glob("state/slurm/*.log")
        ]
        return "\n".join((self.rig.logs(), *texts, self.cluster.logs()))

    def close(self) -> None:
        """End what the site started; jobs end with the cluster."""
        self.rig.close()

    @property
    def _env(self) -> dict[str, str]:
        return self.rig._far_away() if self.rig.remote else {}

    def _command(self, *options: str) -> list[str]:
        if self.rig.remote:
            options = ("--server", self.rig.server, *options)
        small = ["--time=60", "--cpus=2", "--idle=6", "--runtime=process"]
        return ["slurm", "feed", *small, *options]
