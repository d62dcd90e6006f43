"""Epochs for which validation figures are reported although the network was hardly ever given the validation samples.

What was drawn proves nothing: a figure is measured where the network goes forward. Which it does unseen where a script
calls a method of its own, say, so that nothing is said unless it was seen to go through all of the set at least once.
"""

from __future__ import annotations

import ast
import bisect
import math
from dataclasses import dataclass
from statistics import median

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, places, told_once
from grader.checks.rule import Hit
from grader.checks.run.endings.end_counts import end_count
from grader.checks.run.written_files import METRICS
from grader.checks.source.calls.arguments import called_on
from grader.checks.source.metrics.reported_figures import computed_at
from grader.checks.source.script import Script
from grader.model.call_site import Site
from grader.model.finding import EvidenceKind
from grader.model.trace import RankTrace

_FEWEST_UNMEASURED = 2
"""Of one, an evaluation that nobody saw may be the reason, such as one before the training."""
_ROUNDING = 0.02
_UNSEEN = ("forward", "compile", "script", "trace", "functional_call", "export", "vmap")
"""Names of calls by which a network goes forward, or is made to, without being called itself."""


@dataclass(slots=True)
class _Round:
    """What a rank evaluated between two of its steps: samples drawn, in how many passes, from where, and given."""

    drawn: int = 0
    passes: int = 0
    given: int = 0
    sites: tuple[Site | None, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the network was given what was drawn, sample by sample."""
        return self.drawn > 0 and abs(self.given - self.drawn) <= _ROUNDING * self.drawn


def unmeasured_epochs(evidence: Evidence) -> Hit | None:
    """More different figures of the validation data than times that the network was run on it."""
    evaluation = evidence.evaluation
    keys = (*(metric.reported_as for metric in evidence.metrics), "val_loss")
    if evaluation is None or evaluation.reported is None or not _seen_whole(evidence):
        return None
    told = {tuple(epoch.get(key) for key in keys) for epoch in evaluation.reported.epochs}
    figures = {one for one in told if any(value is not None for value in one)}
    times = [_times(evidence, rank) for rank in evidence.trace.ranks]
    known = [number for number in times if number is not None]
    most = max(known, default=math.inf)
    if len(figures) < most + _FEWEST_UNMEASURED:
        return None
    streams = evidence.ledger.validation
    taken = (
        f"in the whole run the network was given as many samples as {count(int(most), 'pass', 'passes')} over them "
        f"takes: for at least {len(figures) - int(most)} of these epochs nothing was measured. Drawing the samples is "
        "not enough; the"
        if most
        else "in the whole run the network was given training samples alone: nothing was measured. The"
    )
    return Hit(
        message=f"`{METRICS}` reports {len(figures)} different figures of the validation data, and {taken} curve shows "
        "what a network did only where one was run on them.",
        hint="Run the network over the validation set in each epoch that reports figures of it, in evaluation mode and "
        "under `torch.no_grad()`, and leave the figures out of epochs without such a pass.",
        where=told_once(
            (
                *places(stream.site for stream in streams),
                *(evidence.script.location(n) for n in computed_at(evidence.script, keys)),
            )
        ),
        details={"figures": len(figures), "evaluations": int(most)},
        evidence=EvidenceKind.TRACE,
    )


def never_measured(evidence: Evidence) -> str:
    """Figures of the validation data, another one in each epoch, of a network that met training samples alone."""
    hit = unmeasured_epochs(evidence)
    if hit is None or hit.details["evaluations"]:
        return ""
    return (
        f"`{METRICS}` reports {hit.details['figures']} different figures of the validation data, and no network was "
        "given anything but training samples in this run."
    )


def _seen_whole(evidence: Evidence) -> bool:
    """Whether what ranks did is known from end to end, in this process."""
    ranks = evidence.trace.ranks
    return (
        evidence.finished
        and evidence.counts_steps
        and not any(record.trace_cut for record in evidence.record.ranks)
        and all(r.ended and not r.problems and end_count(r, "elsewhere") is not None for r in ranks)
        # What other processes of the script do is not told.
        and not any(r.events("process") for r in ranks)
        # Who trains unseen, as compiled or captured, evaluates so as well.
        and all(step.samples for r in evidence.trace.trainers for step in r.steps)
    )


def _times(evidence: Evidence, rank: RankTrace) -> int | None:
    """How many times over a rank's networks were given its validation samples, rounded up; None unknown."""
    rounds = _rounds(evidence, rank)
    shown = [one for one in rounds if one.whole]
    sizes = [one.drawn // one.passes for one in shown]
    if not any(one.drawn for one in rounds):
        alone = _shares(evidence)
        sizes = [one.given for one in rounds if one.given in alone]
    given = sum(one.given for one in rounds) + (end_count(rank, "elsewhere") or 0)
    if not sizes or not min(sizes):
        # Whoever is asked for nothing but training samples, from the first to the last, has no figure of others.
        none_at_all = not given and rank.steps and not any(one.drawn for one in rounds)
        return 0 if none_at_all and not _goes_forward_unseen(evidence.script) else None
    lines = {site for one in shown for site in one.sites}
    same_line = any(not one.given and lines.issuperset(one.sites) for one in rounds if one.drawn)
    if not same_line and _goes_forward_unseen(evidence.script):
        return None
    usual = median([step.samples for step in rank.steps]) if rank.steps else 0
    # In training mode and with gradients on, validation looks like training that belongs to the next step.
    as_training = sum(max(0, step.samples - int(usual)) for step in rank.steps)
    return math.ceil((given + as_training) / min(sizes))


def _rounds(evidence: Evidence, rank: RankTrace) -> list[_Round]:
    steps = [step.t for step in rank.steps]
    rounds = [_Round() for _ in range(len(steps) + 1)]
    for stream in evidence.ledger.validation:
        for shard in stream.shards(rank.rank):
            one = rounds[bisect.bisect(steps, shard.start_t)]
            one.drawn += shard.num_samples
            one.passes += 1
            one.sites += (shard.site,)
    begun = 0.0
    for event in rank.events("evaluation"):
        samples = event.fields.get("num_samples")
        if event.fields.get("op") == "begin":
            begun = event.t
        elif isinstance(samples, int) and event.fields.get("trained") is not True:
            rounds[bisect.bisect(steps, begun)].given += samples
    return rounds


def _shares(evidence: Evidence) -> set[int]:
    """Sizes of the validation set and of a rank's share of it."""
    total, ranks = evidence.num_validation or 0, evidence.world_size
    return {total, total // ranks, -(-total // ranks)} - {0}


def _goes_forward_unseen(script: Script) -> bool:
    """Whether the text has another way than to call the network, which evaluations may have gone."""
    classes = [n for tree in script.trees for n in ast.walk(tree.root) if isinstance(n, ast.ClassDef)]
    methods = [[f.name for f in one.body if isinstance(f, ast.FunctionDef)] for one in classes]
    own = {name for names in methods if "forward" in names for name in names if not name.startswith("__")}
    return any(
        not (isinstance(on := called_on(call), ast.expr) and ast.unparse(on).startswith(("self", "super(")))
        for call in script.called(*_UNSEEN, *own)
    )
