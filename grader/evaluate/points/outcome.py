"""What a run came to, as rubric items are judged on it, and the parts of items that measures and files decide.

Pure. What the judge could not watch pays only where the outcome of the run vouches for it, and says so either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.phrases import listed
from grader.checks.run.metrics.score_reasons import reason_of
from grader.checks.run.models.replica_comparison import compare_finals, incomparable
from grader.checks.source.script import Script
from grader.evaluate.time.timing import Timing
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.finding import EvidenceKind, Finding, Severity, family_of
from grader.model.grade import CheckResult, ItemState, State
from grader.model.metric import Metric
from grader.model.run import Ending
from grader.model.task import RubricItem, Task

_STOPPED = {
    Ending.CRASHED: "First mend what stopped the script.",
    Ending.DEADLOCKED: "First mend what kept the ranks waiting for each other.",
    Ending.TIMED_OUT: "First let the script end within its time.",
    Ending.OUT_OF_MEMORY: "First let the script get by with its memory.",
}
_UNEXAMINED = "The task can't tell this of what the run left, so a person looks at it."
TRAINED = "trained"
"""Name under which a task's `examine()` may say whether anything was trained, where no optimizer steps."""

PREPARED_OTHERWISE = "EVAL011"
NOT_SCORED = "EVAL012"
"""What explains a missed target costs the points for its metric, and no others."""
CONTRADICTED = "EVAL007"
"""What tells of weights that are not those of the report's end; it explains a missed target where they are older."""
UNREAD, WRONG = "EVAL009", "EVAL010"
"""What is said of files that an answer is about costs the points of that answer, and no others."""
NO_GROUP = "DIST001"
"""Ranks that form no process group are training runs of their own: everything between ranks comes after it."""
OPTIMISATION = "OPT"
"""Family of faults in batches, rates and their schedules."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing an item asks for; `earned` and `not_seen` are shares, 0–1. What was not seen may be earned."""

    earned: float
    state: ItemState
    reason: str
    evidence: tuple[EvidenceKind, ...] = ()
    codes: tuple[str, ...] = ()
    not_seen: float = 0.0


# Without slots: what the outcome vouches for is looked up when it is asked for, and kept.
@dataclass(frozen=True)
class Outcome:
    """What items are judged on.

    Attributes:
        evidence: the run, or the text alone of a submission that does not parse.
        task: what it is judged by.
        findings, checks: the checks' results.
        timing: the run's time against its target.
    """

    evidence: Evidence | SourceEvidence
    task: Task
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    timing: Timing

    @property
    def completed(self) -> bool:
        """Whether the run came to the end of its work."""
        return isinstance(self.evidence, Evidence) and self.evidence.finished

    @property
    def evaluation(self) -> Evaluation | None:
        """What the scorer measured."""
        return self.evidence.evaluation if isinstance(self.evidence, Evidence) else None

    @property
    def script(self) -> Script:
        """The submission's text."""
        return self.evidence.script

    @property
    def dataset(self) -> str:
        """Decides which targets apply."""
        return self.evidence.facts.dataset

    @property
    def trained(self) -> bool:
        """Whether anything was trained: a step was seen, or the files that were left show it."""
        if isinstance(self.evidence, SourceEvidence):
            return False
        if self.evaluation is not None and self.evaluation.unexamined:
            return True  # nobody can tell, and a person looks
        answers = self.evaluation.answers if self.evaluation is not None else {}
        # Who examines files knows best whether anything was computed for them.
        shown = [answers[TRAINED]] if TRAINED in answers else answers.values()
        # Steps that the ranks told of are none where what they told is doubted: only what was left behind speaks then.
        doubted = any(f.holds and family_of(f.code) == "TRUST" for f in self.findings)
        stepped = self.evidence.trained and not doubted
        return stepped or any(self.metric_shares.values()) or any(answer.share for answer in shown)

    @cached_property
    def first_step(self) -> str:
        """What the script has to do before anything that it did not reach, in a sentence; "" where it did all that."""
        run = self.evidence
        if not isinstance(run, Evidence):
            return ""
        alone = any(check.code == NO_GROUP and check.state is State.CONTRADICTED for check in self.checks)
        if alone or (self.completed and run.world_size > 1 and not run.grouped):
            return "First form a process group with `dist.init_process_group`."
        if not self.completed:
            return _STOPPED.get(run.record.ending, "")
        return "" if self.trained else "First train the model: nothing that changes its weights was seen."

    def not_reached(self, reason: str) -> Part:
        """What the run ended before, or never began: the reason, and the step that comes first."""
        return Part(0.0, ItemState.NOT_REACHED, f"{reason} {self.first_step}".rstrip())

    @cached_property
    def metric_shares(self) -> dict[str, float]:
        """Largest share that an item about a metric earns, by the metric's title."""
        shares: dict[str, float] = {}
        for item in self.task.rubric:
            metric = self.task.metric(item.metric) if item.metric is not None else None
            if metric is not None:
                earned = network(item, metric, self).earned
                shares[metric.title] = max(earned, shares.get(metric.title, 0.0))
        return shares

    @cached_property
    def vouched(self) -> str:
        """What of the outcome speaks for work that nobody could watch; "" where nothing does."""
        run = self.evidence
        if not isinstance(run, Evidence) or not self.completed or not self.trained:
            return ""
        if any(share < 1 for share in self.metric_shares.values()):
            return ""
        seen = [f"the {title} was reached" for title in self.metric_shares]
        if run.world_size > 1 and not incomparable(run.trace):
            if not self._replicas_equal:
                return ""
            seen.append("all ranks ended with the same weights")
        elif run.world_size > 1:
            seen.append("the ranks held one network in parts")
        return listed(seen)

    @property
    def _replicas_equal(self) -> bool:
        check = next((check for check in self.checks if check.code == "GRAD007"), None)
        if check is not None and check.state is not State.NOT_OBSERVABLE:
            return check.state is State.VERIFIED
        assert isinstance(self.evidence, Evidence), "who asks has looked"
        pairs = list(self.evidence.ledger.layout.pairs(self.evidence.trace.ranks))
        return bool(pairs) and all(compare_finals(one, other) == () for one, other in pairs)


def _measured(share: float, reason: str, evidence: tuple[EvidenceKind, ...], *codes: str) -> Part:
    """What a measure gives: all, a part or nothing."""
    if share >= 1:
        return Part(1.0, ItemState.EARNED, reason, evidence)
    state = ItemState.PARTLY if share > 0 else ItemState.LOST
    return Part(share, state, reason, evidence, codes)


def _unseen(reason: str, outcome: Outcome) -> Part:
    """What nobody could watch, of a part that asks for nothing else."""
    return Part(1.0 if outcome.vouched else 0.0, ItemState.NOT_SEEN, f"{reason} {pay(outcome)}", not_seen=1.0)


def pay(outcome: Outcome, what: str = "It") -> str:
    """Why what was not seen pays, or does not."""
    if outcome.vouched:
        return f"{what} counts as right, because {outcome.vouched}."
    return f"{what} earns nothing by itself, and the outcome of the run does not speak for it."


def network(item: RubricItem, metric: Metric, outcome: Outcome) -> Part:
    """A metric on hidden data against its target."""
    target, evaluation = outcome.task.levels(outcome.dataset).get(metric.name), outcome.evaluation
    if evaluation is None or target is None:
        if outcome.completed:
            return Part(0.0, ItemState.NOT_SEEN, "The weights were not scored.", not_seen=1.0)
        return outcome.not_reached("The run ended before it left weights to be scored.")
    evidence = (EvidenceKind.EVALUATION,)
    value = evaluation.hidden.get(metric.name)
    if not outcome.completed and evaluation.problem is ArtifactProblem.MISSING:
        return outcome.not_reached("The run ended before it left weights to be scored.")
    if evaluation.problem is not None or value is None:
        unscored = evaluation.problem is not None and outcome.completed
        codes: tuple[str, ...] = (NOT_SCORED,) if unscored else ()
        return _measured(0.0, evaluation.detail or "The weights could not be scored.", evidence, *codes)
    on = f"{evaluation.num_hidden:,} hidden samples" if evaluation.num_hidden else "hidden data"
    seen = f"{metric.heading} {metric.text(value)} on {on}"
    if metric.reached(value, target):
        return _measured(1.0, f"{seen}; {metric.asked(target)} was asked for.", evidence)
    share = max((s for factor, s in item.steps if metric.nearly(value, target, factor)), default=0.0)
    why = reason_of(evaluation, (metric,), outcome.script)
    because = f" {why.sentence}" if why is not None and why.gain > 0 else ""
    about_images = why is not None and why.about_images
    codes = (PREPARED_OTHERWISE,) if about_images else (*_older(metric, outcome), *_slowed(outcome))
    return _measured(share, f"{seen}; {metric.asked(target)} is asked for.{because}", evidence, *codes)


def _older(metric: Metric, outcome: Outcome) -> tuple[str, ...]:
    """That weights of an earlier epoch were saved, where later ones were better by this metric."""
    seen = (f for f in outcome.findings if f.code == CONTRADICTED and f.severity is Severity.WARNING)
    older = any("saved_epoch" in f.details and f.details.get("metric") == metric.name for f in seen)
    return (CONTRADICTED,) if older else ()


def _slowed(outcome: Outcome) -> tuple[str, ...]:
    """What was seen of batches and rates that may have cost learning, where no item asks for them."""
    if any(family_of(code) == OPTIMISATION for item in outcome.task.rubric for code in item.requires):
        return ()
    seen = (f for f in outcome.findings if f.evidence is not EvidenceKind.SOURCE and not f.refuted)
    return tuple(
        sorted({f.code for f in seen if family_of(f.code) == OPTIMISATION and f.severity is Severity.WARNING})
    )


def answer(name: str, outcome: Outcome) -> Part:
    """What the task says about the files that the run left."""
    evaluation, evidence = outcome.evaluation, (EvidenceKind.EVALUATION,)
    said = evaluation.answers.get(name) if evaluation is not None else None
    if said is None and not outcome.completed:
        return outcome.not_reached("The run ended before it left what is looked at here.")
    if evaluation is not None and evaluation.unexamined:
        return Part(0.0, ItemState.NOT_SEEN, _UNEXAMINED, not_seen=1.0)
    if said is None and evaluation is not None and evaluation.unread:
        reason = " ".join(evaluation.unread[file] for file in sorted(evaluation.unread))
        return _measured(0.0, reason, evidence, UNREAD)
    if said is None or said.share is None:
        return _unseen(said.said if said is not None else "The task says nothing about this.", outcome)
    # What a task can't see of a result that looks right to it, the text may show.
    found = (f for f in outcome.findings if f.code == WRONG and name in f.details.get("answers", {}))
    if said.share == 1 and (one := next(found, None)) is not None:
        return _measured(0.0, one.message, evidence, WRONG)
    return _measured(said.share, said.said, evidence, WRONG)


def time(item: RubricItem, outcome: Outcome) -> Part:
    """The run's time against its target."""
    timing, evidence = outcome.timing, (EvidenceKind.OUTSIDE,)
    if not outcome.completed or timing.seconds is None or timing.target_s is None:
        return outcome.not_reached("The run did not end well, so it has no time.")
    seen = f"{timing.seconds:.1f} s {timing.clock}"
    if timing.num_repeats:
        seen += f", the better of the first and the median of {timing.counted}"
    if far := [f"the {title}" for title, share in outcome.metric_shares.items() if share <= 0]:
        allowed = f"up to {timing.target_s:.1f} s {'was' if timing.met else 'is'} allowed"
        joined = "but" if timing.met else "and"
        rule = f"a time counts only for a run whose network comes near {listed(far)} asked for"
        decided = (EvidenceKind.EVALUATION,)
        return _measured(
            0.0, f"{seen}; {allowed}, {joined} {rule}.", decided if timing.met else evidence + decided
        )
    if timing.met:
        return _measured(1.0, f"{seen}; up to {timing.target_s:.1f} s was allowed.", evidence)
    share = max((s for factor, s in item.steps if timing.seconds <= factor * timing.target_s), default=0.0)
    if timing.unsettled:
        busy = (
            f"The machine was busy with other work while this ran, so {seen} against {timing.target_s:.1f} s says "
            "nothing of the script. Grade it again when the machine is quiet."
        )
        return Part(share, ItemState.NOT_SEEN, busy, evidence, not_seen=1 - share)
    return _measured(share, f"{seen}; up to {timing.target_s:.1f} s is allowed.", evidence)
