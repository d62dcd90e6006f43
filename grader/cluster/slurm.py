"""Slurm's own commands, for one account's worker jobs: which there are, submit one, cancel one that still waits.

Jobs are known by their names, `PREFIX-NEED`: whoever asks with the same prefix sees the same jobs, today and after a
restart. Nothing is submitted or cancelled by list, so that what Slurm refuses concerns one job alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from grader.cluster.worker_job import JobState, WorkerJob, num_gpus_of
from grader.errors import InfraError, UsageError

_ANSWER_S = 60.0
"""slurmctld may be busy with thousands of jobs; Slurm's commands themselves give up on it sooner."""
_STATES = {
    "PENDING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "CONFIGURING": JobState.RUNNING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "FAILED": JobState.FAILED,
    "BOOT_FAIL": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
}
"""Everything else has ended, or does so just now."""


class SlurmAwayError(InfraError):
    """slurmctld does not answer, or not in time. What was asked of it may or may not have been done."""


class SlurmRefusedError(InfraError):
    """Slurm answers, and will not have a job as it is."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """The cluster whose commands are on the PATH.

    Attributes:
        prefix: what the names of our jobs begin with; two services that share an account have two.
        idle_s: how long their workers wait for something to judge before they end.
    """

    prefix: str
    idle_s: float

    def __post_init__(self) -> None:
        lacking = [name for name in ("sbatch", "scancel", "squeue") if shutil.which(name) is None]
        if lacking:
            raise UsageError(
                f"{', '.join(lacking)}: not found. This is for a host that submits jobs to Slurm."
            )

    def jobs(self) -> tuple[WorkerJob, ...]:
        """Our jobs, those that have ended, too, as long as Slurm remembers them (MinJobAge, 5 minutes by default).

        Raises:
            SlurmAwayError: slurmctld does not answer.
        """
        text = _call("squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%j|%M|%r")
        found = (self._job(line.split("|", 4)) for line in text.splitlines())
        return tuple(job for job in found if job is not None)

    def submit(self, script: str, need: str, options: Sequence[str] = ()) -> int:
        """Submit a batch script; returns the job's number.

        Args:
            script: its text.
            need: what the worker is for; it becomes the job's name.
            options: of sbatch, which win over those in the script.

        Raises:
            SlurmAwayError: slurmctld does not answer; the job may be there all the same.
            SlurmRefusedError: Slurm does not take it; the text is Slurm's own.
        """
        name = f"--job-name={self.prefix}-{need}"
        answer = _call("sbatch", "--parsable", name, *options, script=script)
        match = re.match(r"([0-9]+)(?:;|$)", answer.strip())
        if match is None:
            raise SlurmRefusedError(f"sbatch answered {answer.strip()!r} instead of a job's number")
        return int(match[1])

    def cancel_pending(self, job_id: int) -> None:
        """Cancel a job that waits; one that has begun meanwhile goes on.

        Raises:
            SlurmAwayError: slurmctld does not answer.
        """
        _call("scancel", "--state=PENDING", str(job_id))

    def _job(self, words: Sequence[str]) -> WorkerJob | None:
        if len(words) != 5 or not words[0].isdigit():
            # Arrays and what else is not ours.
            return None
        prefix, _dash, need = words[2].rpartition("-")
        try:
            num_gpus_of(need)
        except ValueError:
            return None
        if prefix != self.prefix:
            return None
        job_id, state, age_s = int(words[0]), _STATES.get(words[1], JobState.ENDED), _seconds(words[3])
        if words[1] == "COMPLETED" and age_s < self.idle_s:
            state = JobState.FAILED
        reason = words[4] if state is JobState.PENDING and words[4] != "None" else ""
        return WorkerJob(job_id, need, state, worker_name(job_id), age_s, reason)


def worker_name(job_id: int) -> str:
    """The name of a job's worker, as the batch script gives it."""
    return f"slurm-{job_id}"


def _seconds(duration: str) -> float:
    """What Slurm writes as `1-02:03:04`, `02:03:04` or `3:04`; 0 for what is none."""
    days, _dash, clock = duration.rpartition("-")
    try:
        seconds = 0
        for part in clock.split(":"):
            seconds = 60 * seconds + int(part)
        return float(86400 * int(days or 0) + seconds)
    except ValueError:
        return 0.0


def _call(name: str, *arguments: str, script: str = "") -> str:
    try:
        done = subprocess.run(
            [name, *arguments],
            input=script,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SlurmAwayError(f"{name} did not answer within {_ANSWER_S:.0f} s") from None
    except OSError as error:
        raise SlurmAwayError(f"{name} can't be run: {error.strerror}") from None
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        kind = SlurmRefusedError if name == "sbatch" and not _is_away(words) else SlurmAwayError
        raise kind(f"{name}: {words}")
    return done.stdout


def _is_away(words: str) -> bool:
    away = ("unable to contact slurm controller", "connection refused", "timed out", "try again", "munge")
    return any(word in words.lower() for word in away)
