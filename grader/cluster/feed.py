"""Feeding: looks at the queue and at Slurm again and again, and does what the plan says.

Whatever cannot be reached is waited for, and nothing is done meanwhile: without the queue nobody knows what is needed,
without Slurm nobody knows what is there already. What went wrong half way the next look sets right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.cluster.plan import make_plan
from grader.cluster.slurm import Slurm, SlurmRefusedError
from grader.cluster.worker_job import JobState, WorkerJob
from grader.errors import InfraError
from grader.store.queue.worker_demand import WorkerDemand


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What one look saw and did.

    Attributes:
        waiting: attempts that wait, by need.
        jobs: ours, as they were before anything was done.
        submitted: number and need of each job that was submitted; without a number where that was only tried.
        cancelled: jobs that waited and are no longer needed.
        problems: what could not be done, as sentences for people.
    """

    waiting: dict[str, int]
    jobs: tuple[WorkerJob, ...] = ()
    submitted: tuple[tuple[int | None, str], ...] = ()
    cancelled: tuple[WorkerJob, ...] = ()
    problems: tuple[str, ...] = ()

    def count(self, state: JobState) -> int:
        """How many of the jobs are in this state."""
        return sum(job.state is state for job in self.jobs)


@dataclass(frozen=True, slots=True)
class WorkerFeed:
    """Keeps one service's queue in workers.

    Attributes:
        demand: asks the queue; raises InfraError where it is away.
        script: the batch script for a need.
        options: of sbatch.
        most: jobs that may wait and run at a time.
        dry_run: only say what would be done.
    """

    demand: Callable[[], WorkerDemand]
    slurm: Slurm
    script: Callable[[str], str]
    options: tuple[str, ...]
    most: int
    dry_run: bool = False

    def look(self) -> FeedReport:
        """Look once, and do what is to be done."""
        try:
            demand = self.demand()
        except InfraError as error:
            return FeedReport({}, problems=(f"The queue can't be asked: {error}",))
        waiting = {need: waits.number for need, waits in demand.waiting.items()}
        try:
            jobs = self.slurm.jobs()
        except InfraError as error:
            return FeedReport(waiting, problems=(f"Slurm can't be asked: {error}",))
        plan = make_plan(demand, jobs, self.most)
        problems = [
            f"Jobs for {need} fail, and no more are submitted for it until Slurm has forgotten them: see their logs."
            for need in plan.failing
        ]
        if self.dry_run:
            return FeedReport(
                waiting, jobs, tuple((None, need) for need in plan.submit), plan.cancel, tuple(problems)
            )
        submitted: list[tuple[int | None, str]] = []
        cancelled: list[WorkerJob] = []
        try:
            for job in plan.cancel:
                self.slurm.cancel_pending(job.job_id)
                cancelled.append(job)
            self._submit(plan.submit, submitted, problems)
        except InfraError as error:
            problems.append(f"Slurm went away: {error}")
        return FeedReport(waiting, jobs, tuple(submitted), tuple(cancelled), tuple(problems))

    def _submit(
        self, needs: tuple[str, ...], submitted: list[tuple[int | None, str]], problems: list[str]
    ) -> None:
        refused = set[str]()
        for need in needs:
            if need in refused:
                continue
            try:
                submitted.append((self.slurm.submit(self.script(need), need, self.options), need))
            except SlurmRefusedError as error:
                # Another need may get what it wants: a cluster may have no four GPUs on a node, but two.
                refused.add(need)
                problems.append(f"Slurm refuses a job for {need}: {error}")
