"""A job of Slurm's keeps to its share of the node, also where the node does not hold it to that."""

from __future__ import annotations

import pytest

from grader.run.devices.allocation import Allocation, read_allocation
from grader.run.devices.hardware import Core, Gpu, Inventory

FOUR = tuple(Gpu(f"GPU-{number}", number) for number in range(4))


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)


def test_only_a_compute_node_has_an_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_allocation() is None
    # In the shell of `salloc`, on the login node.
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert read_allocation() is None
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "2")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "16")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert read_allocation() == Allocation(7, 2, 16, False)


@pytest.mark.parametrize(
    ("num_gpus", "names_gpus", "fit"),
    [(4, False, 4), (4, True, 4), (2, True, 4), (2, False, 0), (0, False, 0), (0, True, 0)],
)
def test_gpus_of_others_are_left_alone(num_gpus: int, names_gpus: bool, fit: int) -> None:
    """Where CUDA_VISIBLE_DEVICES names them, what it leaves to others is known already."""
    own = Allocation(7, num_gpus, 8, names_gpus).own_gpus(FOUR)
    assert sum(not gpu.unfit for gpu in own) == fit
    assert all("job 7" in gpu.unfit for gpu in own if gpu.unfit)


def test_jobs_that_are_not_bound_take_other_cpus_than_their_neighbours() -> None:
    cpus = tuple(range(16))
    jobs = [set(Allocation(number, 0, 4, False).own_cpus(cpus)) for number in (7, 8, 9, 10)]
    assert set.union(*jobs) == set(cpus)
    assert Allocation(7, 0, 16, False).own_cpus(cpus) == cpus
    assert Allocation(7, 0, 0, False).own_cpus(cpus) == cpus, "it does not say how many"


def test_what_is_not_enforced_is_said() -> None:
    def problems(num_gpus: int, num_cpus: int, gpus: tuple[Gpu, ...]) -> str:
        inventory = Inventory(gpus, (Core((0,)),), "" if gpus else "no driver")
        return "; ".join(Allocation(7, num_gpus, 8, True).problems(inventory, num_cpus))

    assert problems(4, 8, FOUR) == ""
    assert "2 GPUs and 4 can be seen: devices are not enforced" in problems(2, 8, FOUR)
    assert "the driver shows 0: no driver" in problems(2, 8, ())
    assert "8 CPUs and it may run on 64" in problems(4, 64, FOUR)
