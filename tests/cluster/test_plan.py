"""What is submitted and what is cancelled, from the queue and the jobs alone."""

from __future__ import annotations

from grader.cluster.plan import Plan, make_plan
from grader.cluster.worker_job import JobState, WorkerJob
from grader.store.queue.worker_demand import WaitingAttempts, WorkerDemand

PENDING, RUNNING, FAILED = JobState.PENDING, JobState.RUNNING, JobState.FAILED


def _job(number: int, state: JobState, need: str = "gpu2", age_s: float = 0.0) -> WorkerJob:
    return WorkerJob(number, need, state, f"w{number}", age_s)


def _demand(busy: dict[str, bool] | None = None, **waiting: tuple[int, float]) -> WorkerDemand:
    return WorkerDemand({need: WaitingAttempts(*facts) for need, facts in waiting.items()}, busy or {})


def test_as_many_as_wait_and_no_more_than_there_is_room_for() -> None:
    assert make_plan(_demand(), [], 4) == Plan((), (), ())
    assert make_plan(_demand(gpu2=(2, 9.0)), [], 4).submit == ("gpu2",) * 2
    assert make_plan(_demand(gpu2=(9, 9.0)), [], 4).submit == ("gpu2",) * 4
    jobs = [_job(1, RUNNING), _job(2, PENDING)]
    assert make_plan(_demand({"w1": True}, gpu2=(9, 9.0)), jobs, 4).submit == ("gpu2",) * 2


def test_what_waits_longest_comes_first_and_nobody_gets_all() -> None:
    demand = _demand(gpu1=(9, 5.0), gpu4=(1, 50.0))
    assert make_plan(demand, [], 1).submit == ("gpu4",)
    assert sorted(make_plan(demand, [], 3).submit) == ["gpu1", "gpu1", "gpu4"]
    # Those that wait make room for another need.
    plan = make_plan(demand, [_job(number, PENDING, "gpu1") for number in (1, 2, 3)], 3)
    assert (plan.submit, [job.job_id for job in plan.cancel]) == (("gpu4",), [3])


def test_a_worker_with_nothing_in_hand_counts_for_one() -> None:
    waits = {"gpu2": (1, 3.0)}
    for busy, age_s, submits in (
        ({"w1": True}, 900.0, 1),
        ({"w1": False}, 900.0, 0),
        ({}, 5.0, 0),  # it only starts
        ({}, 900.0, 1),  # its node may be dead
    ):
        plan = make_plan(_demand(busy, **waits), [_job(1, RUNNING, age_s=age_s)], 4)
        assert len(plan.submit) == submits, (busy, age_s)


def test_jobs_that_fail_are_not_submitted_without_end() -> None:
    failed = [_job(number, FAILED) for number in (1, 2, 3)]
    demand = _demand(gpu2=(2, 9.0), gpu1=(1, 1.0))
    assert make_plan(demand, failed[:2], 4).submit.count("gpu2") == 2
    plan = make_plan(demand, failed, 4)
    assert (plan.submit, plan.failing) == (("gpu1",), ("gpu2",))
