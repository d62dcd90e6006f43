"""One rubric item against the evidence: which share of its points is earned, lost, or cannot be told.

Pure. Hints and review findings cost nothing; what could not be seen is said to be so and never passed in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.evidence import Evidence, SourceEvidence
from grader.evaluate.timing import Timing
from grader.model.evaluation import Evaluation
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import CheckResult, RubricResult, State
from grader.model.run import Ending
from grader.model.task import RubricItem, Task


@dataclass(frozen=True, slots=True)
class Facts:
    """What items are judged on.

    Attributes:
        evidence: the run, or the text alone of a submission that does not parse.
        findings, checks: the checks' results.
        timing: the run's time against its target.
    """

    evidence: Evidence | SourceEvidence
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    timing: Timing

    @property
    def completed(self) -> bool:
        """Whether the run came to its own end."""
        return isinstance(self.evidence, Evidence) and self.evidence.record.ending is Ending.COMPLETED

    @property
    def evaluation(self) -> Evaluation | None:
        """What the scorer measured."""
        return self.evidence.evaluation if isinstance(self.evidence, Evidence) else None

    @property
    def dataset(self) -> str:
        """Decides which accuracy target applies."""
        return self.evidence.facts.dataset


@dataclass(frozen=True, slots=True)
class _Part:
    """One thing an item asks for; `earned` and `unseen` are shares, 0–1, and what is neither is lost."""

    earned: float
    unseen: float
    state: State
    reason: str
    evidence: tuple[EvidenceKind, ...] = ()
    codes: tuple[str, ...] = ()


def costs(finding: Finding) -> bool:
    """Whether a finding costs points where the rubric lists it: warnings and errors that the run did not refute."""
    return finding.severity in {Severity.ERROR, Severity.WARNING} and not finding.refuted


def judge_item(item: RubricItem, task: Task, facts: Facts) -> RubricResult:
    """Points, state and reason of one item.

    In a completed run what could not be seen leaves the denominator; in one that ended early it earns nothing, while
    what was seen up to there counts.
    """
    parts = []
    if item.metric == "accuracy":
        parts.append(_accuracy(item, task, facts))
    elif item.metric == "time":
        parts.append(_time(item, task, facts))
    if item.answer:
        parts.append(_answer(item.answer, facts))
    if item.requires:
        parts.append(_requires(item.requires, facts))
    worst = next(
        (p for state in (State.CONTRADICTED, State.NOT_OBSERVABLE) for p in parts if p.state is state),
        parts[0],
    )
    unseen = max(p.unseen for p in parts) if facts.completed else 0.0
    earned = item.points
    for part in parts:
        earned *= part.earned
    return RubricResult(
        id=item.id,
        title=item.title,
        must=item.must,
        points=round(item.points * (1 - unseen), 2),
        full_points=item.points,
        earned=round(min(earned, item.points * (1 - unseen)), 2),
        state=worst.state,
        evidence=worst.evidence,
        reason=worst.reason,
        codes=tuple(sorted({code for p in parts for code in p.codes})),
    )


def accuracy_target(task: Task, dataset: str) -> float | None:
    """The accuracy to reach on that data set, None where the task sets none."""
    target = task.target("accuracy")
    return (target.at_least or {}).get(dataset) if target is not None else None


def _accuracy(item: RubricItem, task: Task, facts: Facts) -> _Part:
    target, evaluation = accuracy_target(task, facts.dataset), facts.evaluation
    if target is None:
        reason = f"The task sets no accuracy for {facts.dataset}."
        return _Part(0.0, 1.0, State.NOT_OBSERVABLE, reason)
    if evaluation is None:
        if facts.completed:
            return _Part(0.0, 1.0, State.NOT_OBSERVABLE, "The weights were not scored.")
        return _Part(0.0, 0.0, State.CONTRADICTED, "The run ended before it left weights to be scored.")
    evidence = (EvidenceKind.EVALUATION,)
    value = evaluation.hidden.get("accuracy")
    if evaluation.problem is not None or value is None:
        return _Part(
            0.0, 0.0, State.CONTRADICTED, evaluation.detail or "The weights could not be scored.", evidence
        )
    seen = f"{value:.3f} on {evaluation.num_hidden:,} hidden samples"
    if value >= target:
        return _Part(1.0, 0.0, State.VERIFIED, f"{seen}; at least {target:.3f} was asked for.", evidence)
    # A hair of tolerance: 0.9 × 0.8 is a little more than 0.72.
    share = max((s for factor, s in item.steps if value >= factor * target - 1e-9), default=0.0)
    part = f" That is near enough for {share:.0%} of the points." if share else ""
    return _Part(
        share, 0.0, State.CONTRADICTED, f"{seen}; at least {target:.3f} is asked for.{part}", evidence
    )


def _answer(name: str, facts: Facts) -> _Part:
    """What the task says about the files that the run left."""
    evaluation, evidence = facts.evaluation, (EvidenceKind.EVALUATION,)
    answer = evaluation.answers.get(name) if evaluation is not None else None
    if answer is None and evaluation is not None and evaluation.unread:
        reason = " ".join(evaluation.unread[file] for file in sorted(evaluation.unread))
        return _Part(0.0, 0.0, State.CONTRADICTED, reason, evidence, ("EVAL009",))
    if answer is None and not facts.completed:
        return _Part(0.0, 0.0, State.CONTRADICTED, "The run ended before it left what is looked at here.")
    if answer is None or answer.share is None:
        reason = answer.said if answer is not None else "The task says nothing about this."
        return _Part(0.0, 1.0, State.NOT_OBSERVABLE, reason)
    if answer.share >= 1:
        return _Part(1.0, 0.0, State.VERIFIED, answer.said, evidence)
    part = f" What is right is worth {answer.share:.0%} of the points." if answer.share else ""
    return _Part(answer.share, 0.0, State.CONTRADICTED, f"{answer.said}{part}", evidence, ("EVAL010",))


def _time(item: RubricItem, task: Task, facts: Facts) -> _Part:
    timing, evidence = facts.timing, (EvidenceKind.OUTSIDE,)
    if not facts.completed or timing.seconds is None:
        return _Part(
            0.0, 0.0, State.CONTRADICTED, "The run did not come to its end, so it has no time.", evidence
        )
    if timing.target_s is None:
        return _Part(
            0.0, 1.0, State.NOT_OBSERVABLE, "There is no reference time on this machine to hold it against."
        )
    seen = f"{timing.seconds:.1f} s {timing.clock}"
    if timing.num_repeats:
        seen += f", the better of the first and the median of {timing.num_repeats + 1} runs"
    if not _learnt(task, facts):
        allowed = f"up to {timing.target_s:.1f} s {'was' if timing.met else 'is'} allowed"
        joined = "but" if timing.met else "and"
        rule = "a time counts only for a run whose network comes near the accuracy asked for"
        return _Part(
            0.0,
            0.0,
            State.CONTRADICTED,
            f"{seen}; {allowed}, {joined} {rule}.",
            (EvidenceKind.EVALUATION,) if timing.met else (EvidenceKind.OUTSIDE, EvidenceKind.EVALUATION),
        )
    if timing.met:
        return _Part(
            1.0, 0.0, State.VERIFIED, f"{seen}; up to {timing.target_s:.1f} s was allowed.", evidence
        )
    share = max((s for factor, s in item.steps if timing.seconds <= factor * timing.target_s), default=0.0)
    part = f" That is near enough for {share:.0%} of the points." if share else ""
    return _Part(
        share, 0.0, State.CONTRADICTED, f"{seen}; up to {timing.target_s:.1f} s is allowed.{part}", evidence
    )


def _learnt(task: Task, facts: Facts) -> bool:
    """Whether the run earns any of the accuracy points; true where the task gives none."""
    items = [i for i in task.rubric if i.metric == "accuracy"]
    return not items or any(_accuracy(item, task, facts).earned > 0 for item in items)


def _requires(codes: tuple[str, ...], facts: Facts) -> _Part:
    found = [f for f in facts.findings if f.code in codes and costs(f)]
    told = {f.code for f in facts.findings}
    results = {c.code: c for c in facts.checks}
    lost = {f.code for f in found}
    # Contradicted without a finding of its own: the engine folded it into its cause, and the fault stands all the same.
    lost |= {c for c in codes if c in results and results[c].state is State.CONTRADICTED and c not in told}
    unseen = [c for c in codes if c not in lost and not _seen(results.get(c), facts.completed)]
    earned = 1 - (len(lost) + len(unseen)) / len(codes)
    if lost:
        # An error, or a fault folded into one, takes everything, also what nobody could look at because of it.
        all_lost = any(f.severity is Severity.ERROR for f in found) or not found
        reason = _why_lost(found, results, lost)
        kinds = {f.evidence for f in found} or {e for c in lost if c in results for e in results[c].evidence}
        share = 0.0 if all_lost else len(unseen) / len(codes)
        return _Part(
            0.0 if all_lost else max(0.0, earned),
            share,
            State.CONTRADICTED,
            reason,
            _in_order(kinds),
            tuple(sorted(lost)),
        )
    if unseen:
        known = results.get(unseen[0])
        why = known.reason if known is not None else "This could not be seen in the run."
        if known is not None and known.state is State.VERIFIED:
            why = "The run ended before this could be seen."
        seen = {e for c in codes if c in results and c not in unseen for e in results[c].evidence}
        return _Part(
            max(0.0, earned),
            len(unseen) / len(codes),
            State.NOT_OBSERVABLE,
            f"{', '.join(unseen)}: {why}",
            _in_order(seen),
        )
    kinds = {e for c in codes for e in results[c].evidence}
    return _Part(1.0, 0.0, State.VERIFIED, _why_right(codes, results), _in_order(kinds))


def _seen(result: CheckResult | None, completed: bool) -> bool:
    if result is None or result.state is State.NOT_OBSERVABLE:
        return False
    # Reading the text of a script that did not come to its end shows intentions, not behaviour.
    return completed or any(kind is not EvidenceKind.SOURCE for kind in result.evidence)


def _why_lost(found: list[Finding], results: dict[str, CheckResult], lost: set[str]) -> str:
    ordered = sorted(found, key=lambda f: (f.severity.rank, f.code))
    if not ordered:
        code = min(lost)
        return f"{code}: {results[code].reason}"
    more = sorted(lost - {ordered[0].code})
    also = f" Also found: {', '.join(more)}." if more else ""
    return f"{ordered[0].code}: {ordered[0].message}{also}"


def _why_right(codes: tuple[str, ...], results: dict[str, CheckResult]) -> str:
    reasons: list[str] = []
    for code in codes:
        if results[code].state is State.VERIFIED and results[code].reason not in reasons:
            reasons.append(results[code].reason)
    return " ".join(reasons) or "Nothing worse than a hint was found."


def _in_order(kinds: set[EvidenceKind]) -> tuple[EvidenceKind, ...]:
    return tuple(kind for kind in EvidenceKind if kind in kinds)
