"""How an attempt is run: what was asked for, and what that comes to for one task on one machine."""

from __future__ import annotations

from dataclasses import dataclass

from grader.errors import UsageError
from grader.model.dataset import PreparedDataset
from grader.model.task import Profile, Task


@dataclass(frozen=True, slots=True)
class Options:
    """How to run; None takes the setting's or the task's default. `timed` False leaves time targets out.

    `own_numbers`: classes have numbers of the submission's own, unless the task says no. False for submissions that are
    the task's own: what they promise must not depend on which numbers a site's key draws.
    `on_cpu`: a profile that needs GPUs is run on the CPU, under gloo, and told so; what is about time is left out.
    `last_try`: what a GPU is said to have failed at is judged all the same, as nobody will make the run again.
    """

    profile: str | None = None
    nproc_per_node: int | None = None
    nnodes: int | None = None
    dataset: str | None = None
    launcher: str | None = None
    seed: int = 0
    timed: bool = True
    own_numbers: bool = True
    on_cpu: bool = False
    last_try: bool = False

    def launcher_of(self, task: Task, nnodes: int) -> str:
        """The launcher of a run on so many nodes.

        Raises:
            UsageError: the task's scripts start their ranks themselves, on one node.
        """
        if task.launcher == "python" and (nnodes > 1 or self.launcher not in (None, "python")):
            left = "--nnodes" if nnodes > 1 else "--cold"
            raise UsageError(
                f"scripts of {task.name} start their ranks themselves, on one node: leave out {left}"
            )
        return self.launcher or task.launcher


@dataclass(frozen=True, slots=True)
class Setting:
    """What one attempt is run on: options and defaults, resolved against the task and this machine.

    `timed` False: time targets are left out. `on_cpu`: the profile asks for GPUs and is run without.
    """

    task: Task
    profile: Profile
    dataset: PreparedDataset
    nproc_per_node: int
    nnodes: int
    launcher: str
    seed: int
    timed: bool
    on_cpu: bool = False

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""
        return self.nproc_per_node * self.nnodes

    @property
    def gpus_per_node(self) -> int:
        """GPUs that ranks of one node get to themselves."""
        # NCCL wants a device for every rank.
        return self.nproc_per_node if self.profile.backend == "nccl" and not self.on_cpu else 0
