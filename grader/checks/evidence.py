"""All the evidence of one run: what rules, diagnoses, rubric, timing and reports look at, and nothing else.

Read once from an attempt's files (`grader.judging.stored_evidence`); nothing here reads a file or decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from grader.checks.phrases import places
from grader.checks.run.contradictions.failed_hooks import lost_steps
from grader.checks.run.data.sample_ledger import Ledger
from grader.checks.run.endings.script_ends import only_left
from grader.checks.run.optimisation.replayed_steps import replays
from grader.checks.source.script import Script
from grader.model.attempt_facts import AttemptFacts
from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.finding import Location, family_of
from grader.model.metric import Metric
from grader.model.precondition import Precondition
from grader.model.run import Ending, RunRecord
from grader.model.task import Expected, Task
from grader.model.trace import RankTrace, Trace

_OF_STEPS = ("DATA", "GRAD", "OPT", "PERF", "SHARD")
"""Families of codes that ask what happens in training steps, and what is fed to them."""


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """A submission that does not parse: nothing was run, and its text is all there is.

    Attributes:
        facts: what was to be judged.
        script: its text, with the syntax errors.
    """

    facts: AttemptFacts
    script: Script


# Without slots: the ledger is made when it is asked for, and kept.
@dataclass(frozen=True)
class Evidence:
    """One run, as everything that was left of it tells.

    Attributes:
        facts: what was to be judged, and on what.
        script: the parsed submission, to quote and to point at lines.
        record: seen from outside.
        trace: told by the probe.
        evaluation: the trusted scorer's, None while not scored.
        calibration: the reference's times on this node class, its runs started as this one; None where there are none.
        logs: rank → (stdout, stderr) as kept, safe text; empty when unknown.
        repeats: records of repeated runs, made where the first one missed its time narrowly.
        second_look: told by the probe in a second run that was looked at line by line, to see which line is to blame;
            None where none was made. Only says where: what is wrong, the first run has shown.
        expected: what the task asks of the optimisation.
        scored: whether networks are scored on the data; else nothing is known of samples that a script makes up.
        has_images: whether the data are images of ten classes, and not the task's own.
        metrics: what the task measures networks by; levels: what of them it asks for on this data set, by name.
    """

    facts: AttemptFacts
    script: Script
    record: RunRecord
    trace: Trace
    evaluation: Evaluation | None = None
    calibration: Calibration | None = None
    logs: tuple[tuple[str, str], ...] = ()
    repeats: tuple[RunRecord, ...] = ()
    second_look: Trace | None = None
    expected: Expected = field(default_factory=Expected)
    scored: bool = True
    has_images: bool = True
    metrics: tuple[Metric, ...] = ()
    levels: dict[str, float] = field(default_factory=dict)

    def of_task(self, task: Task) -> Evidence:
        """The same evidence as this task sees it."""
        calibration = self.calibration
        if calibration is not None and not calibration.like(self.facts.launcher, task.launcher):
            # A cold start costs seconds of imports: held against warm runs, an honest script would seem slow.
            calibration = None
        return replace(
            self,
            expected=task.expected,
            scored=task.scored,
            has_images=task.has_images,
            metrics=task.metrics,
            levels=task.levels(self.facts.dataset),
            calibration=calibration,
        )

    @cached_property
    def ledger(self) -> Ledger:
        """Who saw which sample, built from the trace."""
        return Ledger.of(self.trace, self.num_train, self.num_validation)

    @property
    def profile(self) -> str:
        """`cpu`, `gpu` or another; `cpu` wherever there was no GPU, so that nothing is asked of one."""
        return self.facts.seen_as

    @property
    def num_train(self) -> int | None:
        """Samples of the training split that was mounted for the script; None unknown."""
        return (self.facts.num_train or None) if self.scored else None

    @property
    def num_validation(self) -> int | None:
        """Samples of the validation split that was mounted for the script; None unknown."""
        return (self.facts.num_validation or None) if self.scored else None

    @property
    def world_size(self) -> int:
        """Ranks that were started."""
        return self.record.world_size

    def offers(self, need: Precondition) -> bool:
        """Whether this run had what it takes for something to show."""
        starts = [rank.start for rank in self.trace.ranks if rank.start is not None]
        machines = max(self.record.num_nodes, sum(start.local_rank == 0 for start in starts))
        return need.met(num_ranks=self.world_size, num_machines=machines, gpus=self.profile != "cpu")

    @cached_property
    def finished(self) -> bool:
        """Whether all ranks came to the end of their work, also where one left with an exit code other than 0 then."""
        if self.record.ending is not Ending.CRASHED:
            return self.record.ending is Ending.COMPLETED
        by_itself = (
            not r.killed_by_judge and r.failure is None and (r.exit_code or 0) >= 0 for r in self.record.ranks
        )
        return all(by_itself) and bool(self.trace.ranks) and all(map(only_left, self.trace.ranks))

    @property
    def asked(self) -> tuple[Metric, ...]:
        """Metrics with a level to reach that the saved weights were scored by on hidden samples."""
        hidden = self.evaluation.hidden if self.evaluation is not None else {}
        return tuple(one for one in self.metrics if one.name in self.levels and one.name in hidden)

    @property
    def grouped(self) -> bool:
        """Whether any rank joined a process group; true where no rank could tell."""
        told = [rank for rank in self.trace.ranks if rank.start is not None]
        return not told or any(group.op == "init" for rank in told for group in rank.groups)

    @property
    def trained(self) -> bool:
        """Whether any rank took an optimizer step, or replayed a graph that holds some."""
        return self.replays or any(rank.steps for rank in self.trace.ranks)

    @property
    def replays(self) -> bool:
        """Whether any rank captured steps in a CUDA graph, whose replays nobody sees."""
        return any(map(replays, self.trace.ranks))

    @property
    def counts_steps(self) -> bool:
        """Whether the steps that ranks told of are all that they took."""
        return not self.replays and not any(map(lost_steps, self.trace.ranks))

    def unseen(self, code: str) -> str:
        """Why what ranks told does not answer what that code asks, in a sentence; "" where it may."""
        if self.counts_steps or family_of(code) not in _OF_STEPS:
            return ""
        if self.replays:
            return (
                "Steps were captured in a CUDA graph and replayed, which nobody beside the script can watch."
            )
        return (
            "The grader lost sight of training steps here, so what was seen of them does not stand for all."
        )

    def written(self, name: str) -> tuple[Location, ...]:
        """Where the script opened or saved a file of that name in its output folder; empty where nobody told."""
        sites = []
        for rank in self.trace.ranks:
            sites += [f.site for f in rank.files if f.out and f.path.rpartition("/")[2] == name]
            sites += [s.site for s in rank.saves if s.out and s.path.rpartition("/")[2] == name]
        return places(sites)

    def rank(self, rank: int) -> RankTrace:
        """One rank's trace."""
        return self.trace.ranks[rank]
