"""What has happened in this rank so far: the counters that hooks of different kinds share.

Plain mutable state of one process; decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grader.probe.hooks.code_locations import CodeLocation


@dataclass(slots=True)
class RankCounters:
    """Counts over the whole run, and what has gathered since the last optimizer step.

    Attributes:
        steps, backwards, forwards: so far; passes: begun over loaders so far; evaluations: begun so far, as runs of
            forward passes.
        numbers: in the rows that models were given in training since the last step, such as tokens.
        elsewhere: samples that modules were given which nobody is known to train, over the whole run: copies of a
            network, of whose class somebody trains another.
        fed: samples that models were given in training since the last step, and gave back something for; delivered:
            samples from loaders since then.
        data_s: seconds spent waiting for loaders since the last step.
        compute_from: time of the first training forward pass since the last step, by `writer.clock`.
        step_ended: time when the last step ended, by the same.
        loss: last loss seen at a backward pass since the last step, where it cost nothing to look.
        synced: whether the last training forward prepared gradient averaging; None unknown.
        micro_backwards, micro_unsynced: backward passes since the last step, and those of them without averaging.
        derivatives: gradients taken since the last step without a backward pass (`torch.autograd.grad`);
            all_derivatives: over the whole run.
        sequence: collectives of the default group when the last step was written; None where there was no group.
        module_trained: whether a module went forward in training since the last step.
        stepping: whether an optimizer is in its step, which may take gradients of its own (a closure).
        beside: whether the last step was over tensors of no module, while a module was trained.
        bypass: wrap and place of a training forward around its wrapper, until a backward pass makes it count.
        credit: samples with known indices that loaders delivered and no model has been given yet.
        explained: whether a loader delivered samples with known indices since the last step.
        largest_batch: samples of the largest batch with known indices.
        unfed_batches: batches delivered since the last forward pass.
        newest: the pass over a loader that delivered the newest batch; None before the first.
    """

    steps: int = 0
    backwards: int = 0
    forwards: int = 0
    passes: int = 0
    evaluations: int = 0
    elsewhere: int = 0
    fed: int = 0
    numbers: int = 0
    delivered: int = 0
    data_s: float = 0.0
    compute_from: float | None = None
    step_ended: float = 0.0
    loss: float | None = None
    synced: bool | None = None
    micro_backwards: int = 0
    micro_unsynced: int = 0
    derivatives: int = 0
    all_derivatives: int = 0
    sequence: int | None = None
    module_trained: bool = False
    stepping: bool = False
    beside: bool = False
    bypass: tuple[int, CodeLocation | None] | None = None
    credit: int = 0
    explained: bool = False
    largest_batch: int = 0
    unfed_batches: int = 0
    newest: Any = None

    def start_next_step(self) -> None:
        """Forget what has gathered for the step that was just written."""
        self.fed = 0
        self.numbers = 0
        self.delivered = 0
        self.data_s = 0.0
        self.compute_from = None
        self.loss = None
        self.synced = None
        self.micro_backwards = 0
        self.micro_unsynced = 0
        self.derivatives = 0
        self.module_trained = False
        self.explained = False


counters = RankCounters()
"""The process's counters."""
