"""What was to be judged, and on what: stored beside the evidence, so that it can be judged again."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.run_options import Setting
from grader.model.submission import Submission


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt before anything ran: stored as `attempt.json`.

    Attributes:
        attempt: unique name.
        task, task_version: what it is judged by.
        profile, nproc_per_node, nnodes, runtime, launcher, seed: how it is run.
        dataset: name; num_train, num_validation, num_hidden: samples of its splits.
        submission: its files; kept here because ranks of the `process` runtime could rewrite the laid-out copy.
        timed: False where time targets were left out.
        arguments: of the script, as the task has them; shims: what stood in for GPUs.
        on_cpu: the profile asks for GPUs, and it was run on the CPU because somebody wanted it so.
        unread: what was not enough to read the submission, as (path, limit, how large it is); None: it could be read.
    """

    attempt: str
    task: str
    task_version: str
    profile: str
    nproc_per_node: int
    runtime: str
    launcher: str
    seed: int
    dataset: str
    num_train: int
    num_validation: int
    num_hidden: int
    submission: Submission
    timed: bool = True
    nnodes: int = 1
    unread: tuple[str, ...] | None = None
    on_cpu: bool = False
    arguments: tuple[str, ...] = ()
    shims: tuple[str, ...] = ()

    @classmethod
    def planned(cls, setting: Setting, name: str, submission: Submission, runtime: str) -> AttemptFacts:
        """An attempt of that name at a setting's task, which is about to be run."""
        return cls(
            attempt=name,
            task=setting.task.name,
            task_version=setting.task.version,
            profile=setting.profile.name,
            nproc_per_node=setting.nproc_per_node,
            nnodes=setting.nnodes,
            runtime=runtime,
            launcher=setting.launcher,
            seed=setting.seed,
            dataset=setting.dataset.name,
            num_train=setting.dataset.num_train,
            num_validation=setting.dataset.num_validation,
            num_hidden=setting.dataset.num_hidden,
            submission=submission,
            timed=setting.timed,
            on_cpu=setting.on_cpu,
            arguments=setting.profile.arguments,
            shims=() if setting.gpus_per_node else setting.profile.shims,
        )

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""
        return self.nproc_per_node * self.nnodes

    @property
    def seen_as(self) -> str:
        """The profile that tells what can show in the run: `cpu` also where another one was run on the CPU."""
        return "cpu" if self.on_cpu else self.profile
