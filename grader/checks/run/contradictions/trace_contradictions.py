"""What the trace claims against what was seen from outside: each disagreement as one fact, with how sure it is.

For staff. `held` marks what honest code cannot produce; everything else may have an honest reason (a file copied by
hand) and is only worth a look. Nothing here is a judgement of a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from grader.checks.evidence import Evidence
from grader.checks.run.contradictions.kernel_counts import one_rank_works, silent_wire, too_many_steps
from grader.checks.run.contradictions.moved_weights import moved_beside_steps
from grader.checks.run.contradictions.told_path import off_path
from grader.checks.run.contradictions.weights_origin import foreign_samples, pretended_samples, unlearned
from grader.checks.run.data.given_inputs import shared_openly
from grader.checks.run.data.sample_labels import changing_labels
from grader.checks.run.endings.end_counts import end_count
from grader.checks.run.gradients.counted_samples import never_learnt
from grader.checks.run.gradients.gradient_origin import (
    made_up,
    met_when_watched,
    not_of_own_samples,
    of_one_rank_more,
    without_steps,
)
from grader.checks.run.metrics.unmeasured_epochs import never_measured
from grader.checks.run.models.equal_sums import contains, equal
from grader.checks.run.models.replica_comparison import sharded
from grader.checks.source.files.carried_data import carried_data
from grader.model.run import Ending, RankRecord
from grader.model.trace import RankTrace

EVENT_BYTES, RARE_EVENTS = 1000, 4000
"""No event of a usual kind is longer, without its list of samples; the others are few by the probe's own limits."""
MAX_GONE_LINES = 4
"""More lines than signals interrupt in an honest run."""


class Subject(StrEnum):
    """What a fact is about, in words that learners may read: never what was compared, or how."""

    TOLD = "what was told of the run"
    WORK = "how ranks share the work"
    GRADIENTS = "how the gradients that ranks step on come about"
    SAMPLES = "which samples ranks train on"
    WEIGHTS = "how the saved weights come about"
    FIGURES = "how the reported figures come about"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One disagreement.

    Attributes:
        fact: one sentence with numbers, for staff.
        held: True for what honest code cannot produce.
        ranks: ranks concerned, empty for the whole run.
        outside: True when it was seen from outside; False when the trace gives itself away.
        subject: what it is about.
    """

    fact: str
    held: bool
    ranks: tuple[int, ...] = ()
    outside: bool = True
    subject: Subject = Subject.TOLD


def contradictions(evidence: Evidence) -> tuple[Contradiction, ...]:
    """Everything that does not fit together in one run; empty is the usual case."""
    found = [
        Contradiction(f"Rank {r.rank}: {sentence}", True, (r.rank,), outside=False)
        for r in evidence.trace.ranks
        for sentence in r.suspicions
    ]
    records = {r.rank: r for r in evidence.record.ranks}
    for trace in evidence.trace.ranks:
        record = records.get(trace.rank)
        if record is not None:
            found += _silence(trace, record)
            found += _unsealed(record)
            found += _flood(trace, record)
            if fact := too_many_steps(trace, record):
                found.append(Contradiction(fact, True, (trace.rank,), subject=Subject.WORK))
    if evidence.record.ending is Ending.COMPLETED:
        found += _weights(evidence)
        weights = (unlearned(evidence), _carried(evidence))
        found += [Contradiction(fact, True, subject=Subject.WEIGHTS) for fact in weights if fact]
        if fact := never_measured(evidence):
            found.append(Contradiction(fact, True, outside=False, subject=Subject.FIGURES))
    shared = shared_openly(evidence)
    told = {
        Subject.WEIGHTS: (moved_beside_steps(evidence),),
        Subject.SAMPLES: (
            foreign_samples(evidence),
            "" if shared else pretended_samples(evidence),
            changing_labels(evidence),
            never_learnt(evidence),
        ),
        Subject.GRADIENTS: (
            made_up(evidence),
            "" if shared else not_of_own_samples(evidence),
            of_one_rank_more(evidence),
            without_steps(evidence),
            met_when_watched(evidence),
        ),
    }
    found += [
        Contradiction(fact, True, outside=False, subject=subject)
        for subject, facts in told.items()
        for fact in facts
        if fact
    ]
    found += _file_times(evidence)
    work = (silent_wire(evidence), one_rank_works(evidence))
    found += [Contradiction(fact, True, subject=Subject.WORK) for fact in work if fact]
    return tuple(found)


def _carried(evidence: Evidence) -> str:
    """Data in the text, where weights were scored that it may have to do with."""
    scored = evidence.evaluation is not None and evidence.evaluation.sums
    return carried_data(evidence.script) if scored else ""


def _silence(trace: RankTrace, record: RankRecord) -> list[Contradiction]:
    """A trace that is missing or stops early. A run that was killed truncates it honestly, and so does the cap."""
    if record.exit_code != 0 or record.killed_by_judge or record.trace_cut or _unsupported(trace):
        return []
    if trace.num_lines == 0 and trace.start is None:
        # The first event is written before the script's first line.
        return [
            Contradiction(
                f"Rank {trace.rank} ended well and told nothing, not even that it started.",
                True,
                (trace.rank,),
            )
        ]
    if not trace.ended:
        # Who leaves by `os._exit` is heard first. What comes of a process that becomes another one is not.
        fact = f"Rank {trace.rank} ended well, but its trace stops before the end."
        return [Contradiction(fact, True, (trace.rank,))]
    if trace.problems:
        fact = f"Rank {trace.rank}'s trace holds lines that could not be read: {trace.problems[0]}"
        return [Contradiction(fact, False, (trace.rank,), outside=False)]
    return []


def _unsealed(record: RankRecord) -> list[Contradiction]:
    """Events that bear no seal of this run's probe, or others that are gone."""
    found = []
    if record.foreign_lines:
        told = f"{record.foreign_lines:,} of the events in rank {record.rank}'s trace were not written by its probe."
        found.append(Contradiction(told, True, (record.rank,)))
    if record.gone_lines:
        told = f"{record.gone_lines:,} events that rank {record.rank}'s probe wrote are not in its trace."
        # A handler of the script's own that raises in the middle of a line can cost one, now and then.
        found.append(Contradiction(told, record.gone_lines > MAX_GONE_LINES, (record.rank,)))
    return found


def _flood(trace: RankTrace, record: RankRecord) -> list[Contradiction]:
    """A trace that was filled to its cap by something else than events; after it nothing was seen any more."""
    if not record.trace_cut:
        return []
    numbers = sum(len(b.indices or ()) for b in trace.batches) + 3 * sum(
        len(f.hashes + f.anchors) for f in trace.feeds
    )
    frequent = (trace.steps, trace.batches, trace.passes, trace.feeds, trace.params, trace.collectives)
    events = sum(map(len, frequent)) + len(trace.events("evaluation"))
    explained = EVENT_BYTES * (events + RARE_EVENTS) + 8 * numbers
    if explained >= trace.num_bytes / 2:
        return []
    fact = (
        f"Rank {trace.rank} wrote {record.trace_bytes >> 20} MiB into its trace, more than is kept, and {events:,} "
        f"events of the kinds that come often explain {explained >> 20} MiB at most: what came afterwards was not seen."
    )
    return [Contradiction(fact, True, (trace.rank,))]


def _unsupported(trace: RankTrace) -> bool:
    """True where the probe said of torch itself that it is too old; a hook that failed is no reason for silence."""
    return any(str(e.fields.get("reason", "")).startswith("torch ") for e in trace.events("unsupported"))


def _weights(evidence: Evidence) -> list[Contradiction]:
    """Weights that no rank saved and that are not those with which training ended, or that no training led to."""
    evaluation = evidence.evaluation
    whole = bool(evidence.trace.ranks) and all(r.ended and not r.problems for r in evidence.trace.ranks)
    cut = any(r.trace_cut for r in evidence.record.ranks)
    if evaluation is None or not evaluation.sums or not whole or cut or sharded(evidence.trace):
        return []
    finals = [f.sums for r in evidence.trace.ranks for f in r.finals]
    saves = [s for r in evidence.trace.ranks for s in r.saves]
    same = [s for s in saves if equal(s.sums, evaluation.sums)]
    told = any(contains(evaluation.sums, sums) for sums in finals if sums) or any(s.live for s in same)
    off = off_path(evidence.trace, evaluation.fingerprints)
    # What training ended with is right wherever it lies, unless gradients were taken that no step tells of.
    if told and not (off and any(end_count(r, "derivatives") for r in evidence.trace.ranks)):
        return []
    if off:
        fact = (
            f"The weights in `{evaluation.artifact}` are none that training went through: in its steps the number "
            f"that stands for `{off.name}` lay between {off.lowest:.4g} and {off.highest:.4g}; here it is "
            f"{off.value:.4g}."
        )
        return [Contradiction(fact, True, subject=Subject.WEIGHTS)]
    if any(r.events("process") for r in evidence.trace.ranks):
        # What other processes of the script do is not told: they may have saved.
        return []
    if same or any(not s.sums or s.api == "dcp" for s in saves):
        # A save without a fingerprint (weights two levels deep, a sharded checkpoint) could be this file.
        return []
    fact = (
        f"The weights in `{evaluation.artifact}` are none of the {len(saves)} checkpoints that the ranks saved, "
        "nor those with which training ended."
    )
    # With no save seen at all, a library that writes files in a way of its own may have made it.
    return [Contradiction(fact, bool(saves), subject=Subject.WEIGHTS)]


def _file_times(evidence: Evidence) -> list[Contradiction]:
    """An artifact older than the first step; not held, since a start checkpoint may be all that a script saves."""
    evaluation = evidence.evaluation
    first = min((r.steps[0].t for r in evidence.trace.ranks if r.steps), default=None)
    if evaluation is None or first is None:
        return []
    for file in evidence.record.outputs:
        if file.path == evaluation.artifact and file.mtime_s < first - 1:
            fact = f"`{file.path}` was written {first - file.mtime_s:.1f} s before the first optimizer step."
            return [Contradiction(fact, False, subject=Subject.WEIGHTS)]
    return []
