"""Which jobs to submit and which to cancel, from what waits in the queue and which jobs there are. Pure.

Every attempt that waits wants a worker of its own, as long as there is room; a job whose worker has nothing in hand, or
is only just starting, counts for one of them. A worker that has not been heard of for long counts for none: its node
may be dead, and the batch system may take minutes to see that. Where more wait than there is room for, needs take
turns, and the one whose oldest attempt has waited longest begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.cluster.worker_job import JobState, WorkerJob
from grader.store.queue.worker_demand import WorkerDemand

MANY_FAILED = 3
"""So many failed jobs that the batch system still remembers, and nothing more is submitted for their need."""


START_S = 60.0
"""A job that runs for longer than this, and whose worker nobody has heard of, counts for nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done now.

    Attributes:
        submit: a need for each job that is to be submitted.
        cancel: jobs that wait and that nothing needs any more.
        failing: needs for which nothing is submitted, because their jobs fail.
    """

    submit: tuple[str, ...]
    cancel: tuple[WorkerJob, ...]
    failing: tuple[str, ...]


def make_plan(demand: WorkerDemand, jobs: Sequence[WorkerJob], most: int) -> Plan:
    """What brings the number of waiting jobs to what the queue needs, at most `most` of all kinds, running ones too."""
    failed = Counter(job.need for job in jobs if job.state is JobState.FAILED)
    running = [job for job in jobs if job.state is JobState.RUNNING]
    pending = [job for job in jobs if job.state is JobState.PENDING]
    unserved = _unserved(demand, running)
    wanted = _shared_out(unserved, most - len(running))
    submit: list[str] = []
    cancel: list[WorkerJob] = []
    failing: list[str] = []
    for need in sorted(wanted.keys() | {job.need for job in pending}):
        have = sorted((job for job in pending if job.need == need), key=lambda job: job.job_id)
        # The youngest goes first: the others have waited longest for their turn.
        cancel += have[wanted[need] :]
        missing = wanted[need] - len(have)
        if missing > 0 and failed[need] >= MANY_FAILED:
            failing.append(need)
        elif missing > 0:
            submit += [need] * missing
    return Plan(tuple(submit), tuple(cancel), tuple(failing))


def _unserved(demand: WorkerDemand, running: Sequence[WorkerJob]) -> dict[str, int]:
    """Attempts for which nobody is there, the need that has waited longest first."""
    unserved = {
        need: waits.number
        for need, waits in sorted(demand.waiting.items(), key=lambda item: (-item[1].oldest_s, item[0]))
    }
    for job in running:
        free = not demand.busy.get(job.worker, job.age_s > START_S)
        if free and unserved.get(job.need):
            unserved[job.need] -= 1
    return unserved


def _shared_out(unserved: Mapping[str, int], room: int) -> Counter[str]:
    """One for each need, then one more for each, until all have theirs or there is no more room."""
    given = Counter[str]()
    while room > 0 and any(given[need] < number for need, number in unserved.items()):
        for need, number in unserved.items():
            if room > 0 and given[need] < number:
                given[need] += 1
                room -= 1
    return given
