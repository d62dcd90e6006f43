"""A reported metric is not that of the saved weights.

## What it finds
A metric of the task in `metrics.json`, such as `val_accuracy`, that differs from what the trusted scorer measures with
the saved weights on the same validation set, or that is made of numbers in the text alone.

## Why it matters
A learning curve is worth something only if its numbers are true. They go wrong when a metric is that of one rank's
part, is divided by the wrong count, is measured in training mode, or when other weights are saved than were measured.

## Example
```python
for epoch in range(10):
    train_one_epoch(model)
    num_correct = count_correct(model, my_part_of_the_validation_set)
    epochs.append({"val_loss": 0.1, "val_accuracy": num_correct / len(val_set)})  # a guess, and one rank's count
torch.save(model.module.state_dict(), path)
```

## Use instead
```python
for epoch in range(10):
    train_one_epoch(model)
    sums = sum_up(model, my_part_of_the_validation_set)
    dist.all_reduce(sums)
    val_loss, val_accuracy = (sums / len(val_set)).tolist()
    epochs.append({"val_loss": val_loss, "val_accuracy": val_accuracy})
torch.save(model.module.state_dict(), path)
```

## How it is seen
In the source: a metric or a loss of an epoch that has no part but literals and counters of loops. In the run by the
trusted scorer: it loads the saved weights and scores every sample of the validation set once. The last epoch, the best
one or the one behind which the weights were saved must have that score; where it is neither the last nor the best, or
another epoch has just these figures, that is said, with the comparison or condition that chose it. Where none has it,
the scorer tries what may be meant: training mode, other files that the run left. Two of the metric's steps are
tolerated (an accuracy's percentage point: autocast rounds), of a share two samples, too, and three times that where
ranks scored their parts with BatchNorm statistics of their own. A figure or a loss that is the measured one times the
number of ranks, or a part of it, is told; so are gathered predictions held against labels in another order, and counts
that are never set back, by the text or by figures that are means over all epochs; nats in the place of bits; targets
that are shifted twice, and attention that sees what it foretells. More different figures than times that the network
was given the validation samples are none that were measured. A script that validates on samples which it sets aside
from the training split reports another figure and is not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import told_once
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.collectives.repeated_sums import repeated_sums
from grader.checks.source.files.kept_weights import kept_without_copy
from grader.checks.source.metrics.reported_figures import FIGURES, computed_at, entries, share_of_right
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.metrics.metric_claims import MetricClaim

SEVERITY = Severity.WARNING
EXPLAINED_BY = (
    "DATA011",
    "EVAL001", "EVAL002", "EVAL003", "EVAL006", "EVAL008",
    # Ranks with networks of their own: what they score together is the score of none that is saved.
    "GRAD001", "GRAD002", "GRAD003", "GRAD007", "GRAD009", "OPT004",
    # Several writers: the metrics may be one's and the weights another's.
    "DIST001", "DIST006", "IO001",
)  # fmt: skip


_PLAIN = ("range", "round", "float", "min", "max")
_LITERAL = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Name, ast.operator, ast.unaryop, ast.expr_context)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag figures of an epoch that nothing was measured for."""
    for tree in script.trees:
        for loop in tree.loops:
            for node in ast.walk(loop):
                for name, value in entries(node):
                    if name in FIGURES and _made_up(script, value):
                        own = share_of_right(script, value) if "acc" in name else ""
                        counted = own or "(num_correct / num_samples).item()"
                        yield Hit(
                            message=f"{script.at(value)} reports {script.quote(value)} as `{name}`: nothing in it was "
                            "measured, only numbers of the text and counters of loops.",
                            hint=f"Report what the validation pass counted, `{counted}` after the counts of all ranks "
                            "were reduced.",
                            where=(script.location(value),),
                        )


def _made_up(script: Script, value: ast.expr) -> bool:
    """Whether a value has a literal part other than 0, and no part that is not a literal or a loop's counter."""
    parts = []
    for n in script.values.parts(value):
        plain = isinstance(n, _LITERAL)
        if isinstance(n, ast.For):
            plain = name_of(n.iter) == "range"
        elif isinstance(n, ast.Call):
            plain = name_of(n) in _PLAIN
        if not plain:
            return False
        parts.append(n)
    named = [n for n in parts if isinstance(n, ast.Name) and name_of(n) not in _PLAIN]
    known = all(all(o is not n for o in script.values.origins(n)) for n in named)
    return known and any(
        isinstance(n, ast.Constant) and isinstance(n.value, float) and n.value for n in parts
    )


def check_run(evidence: Evidence) -> Observation:
    """Compare every metric that is reported of the validation data with the trusted one."""
    from grader.checks.run.metrics.evaluation_passes import unseen
    from grader.checks.run.metrics.metric_claims import MetricClaim
    from grader.checks.run.metrics.saved_statistics import last_was_saved
    from grader.checks.run.metrics.unmeasured_epochs import unmeasured_epochs
    from grader.checks.run.models.replica_comparison import replicas_differ

    made_up = list(check_source(evidence.script))
    if made_up and evidence.evaluation is not None and evidence.evaluation.reported is not None:
        return flagged(*made_up)
    evaluation = evidence.evaluation
    measured = [m for m in evidence.metrics if evaluation is not None and m.name in evaluation.validation]
    if evaluation is None or not measured:
        return not_observable(
            "The saved weights were not scored, so there is nothing to hold the reported metric against."
        )
    if evaluation.reported is None:
        why = f": {evaluation.reported_problem}" if evaluation.reported_problem else ""
        return unseen(evidence, f"No metrics were reported{why}.")
    told = [metric for metric in measured if evaluation.reported.values(metric)]
    if not told:
        keys = " and no ".join(f"`{metric.reported_as}`" for metric in measured)
        return not_observable(f"The reported metrics hold no {keys}.")
    if {s.split for s in evidence.ledger.validation} == {"train"}:
        return not_observable(
            "The script validates on samples of the training split, so what it reports is another figure than the one "
            "measured here."
        )
    compared = [_compared(evidence, MetricClaim(evaluation, metric)) for metric in told]
    hits = [one for one in compared if isinstance(one, Hit)]
    right = " ".join(one for one in compared if isinstance(one, str))
    if hits and replicas_differ(evidence.trace):
        return idle(
            "Ranks scored networks of their own together, so that the curve is of none that can be saved."
        )
    if not hits and (unmeasured := unmeasured_epochs(evidence)) is not None:
        return flagged(unmeasured)
    kept = next(iter(kept_without_copy(evidence.script)), None)
    if hits and kept is not None and last_was_saved(evidence):
        at_line = evidence.script.at(kept.taken)
        return idle(
            f"{at_line} kept no copy, so that the last weights were saved, whatever was reported: IO010."
        )
    return flagged(*hits) if hits else verified(right, EvidenceKind.EVALUATION)


_SAME = 0.005
"""How far a figure may be from that many times another: what rounds differently is off by less."""


def _compared(evidence: Evidence, one: MetricClaim) -> Hit | str:
    """What is wrong with one metric's report, or a sentence that it is right."""
    from grader.checks.run.metrics.claim_causes import claim_cause
    from grader.checks.run.metrics.older_weights import epoch_of_same_figures, older_weights
    from grader.checks.run.metrics.reported_epochs import claimed_epochs, saved_epochs, tolerance
    from grader.checks.run.metrics.saved_statistics import other_statistics
    from grader.checks.run.metrics.score_reasons import WHAT_TO_WRITE, reason_of
    from grader.model.evaluation import Change

    evaluation, metric, values, epochs = one.evaluation, one.metric, one.values, one.epochs
    gaps = [abs(value - one.measured) for value in values]
    # An epoch that the saved weights cannot be of fits by chance alone.
    claimed, saved = claimed_epochs(epochs, metric), saved_epochs(evidence, len(epochs))
    closest = min(claimed | saved, key=lambda i: (gaps[i], i not in claimed, -i))
    allowed = tolerance(evidence, metric)
    fits = gaps[closest] <= allowed
    reason = reason_of(evaluation, (metric,), evidence.script)
    if fits and closest in claimed:
        loss, told = evaluation.validation.get("loss", 0.0), epochs[closest].get("val_loss", 0.0)
        if times := _times(evidence, loss, told):
            return _times_hit(evidence.script, one, ("loss", told, loss), times)
        return f"Reported {values[closest]:.4g} (epoch {closest}), measured {one.exactly} with the saved weights."
    if reason is not None and reason.about_images:
        return (
            f"Reported {values[-1]:.4g}, which the saved weights come near to on images prepared as the script "
            "prepares them. EVAL011 tells of those that are scored."
        )
    # As written: what is above 1 is no fraction, and whether it is a percentage the measured one decides.
    written, ranks = {epochs[i][metric.reported_as] for i in claimed | saved}, len(evidence.trace.ranks)
    if metric.share and any(t > 1 and abs(t - ranks * one.measured) <= ranks * allowed for t in written):
        return _counted_hit(evidence, one)
    if not metric.share and not fits and (times := _times(evidence, one.measured, values[-1])):
        return _times_hit(evidence.script, one, (metric.title, values[-1], one.measured), times)
    older = closest if fits else epoch_of_same_figures(one, saved)
    if older is not None:
        return older_weights(evidence, one, older, allowed, reason.sentence if reason is not None else "")
    said = _contradicted(one, allowed)
    change = reason.other.change if reason is not None else Change.NOTHING
    names = (metric.reported_as, metric.name)
    cause = claim_cause(evidence, one, allowed) if change is Change.NOTHING else None
    other = other_statistics(evidence) if change is Change.MODE else None
    nodes = other.nodes if other is not None else cause.nodes if cause is not None else ()
    known = (reason and reason.sentence, other and other.says, cause and cause.says)
    said = " ".join(s for s in (said, *(known if any(known) else (_UNKNOWN,) * (not fits))) if s)
    made = (*nodes, *computed_at(evidence.script, names))
    return Hit(
        message=said,
        hint=other.hint
        if other is not None
        else cause.advice
        if cause is not None
        else WHAT_TO_WRITE[change],
        where=evidence.written(evaluation.artifact)
        if change is Change.WEIGHTS
        else told_once(evidence.script.location(n) for n in made),
        details={"reported": list(values), "measured": one.measured, "tolerance": allowed},
        evidence=EvidenceKind.EVALUATION,
    )


def _counted_hit(evidence: Evidence, one: MetricClaim) -> Hit:
    """The right answers of all ranks, divided by the samples of one."""
    ranks = len(evidence.trace.ranks)
    names = (one.metric.reported_as, one.metric.name)
    return Hit(
        message=f"`metrics.json` reports a validation {one.metric.title} that is {ranks} times the {one.exactly} "
        f"which the saved weights score: the right answers of {ranks} ranks were added up, and divided by the samples "
        "of one.",
        hint="Count the samples where the right answers are counted, add up both over the ranks in one `all_reduce`, "
        "and divide by that number instead.",
        where=told_once(evidence.script.location(n) for n in computed_at(evidence.script, names)),
        details={"measured": one.measured, "times": ranks},
        evidence=EvidenceKind.EVALUATION,
    )


def _times(evidence: Evidence, trusted: float, told: float) -> str:
    """How often, or which part of, a trusted mean is reported, where that is the number of ranks; else ""."""
    ranks = len(evidence.trace.ranks)
    if ranks < 2 or trusted <= 0.0 or told <= 0.0:
        return ""
    if abs(told / trusted / ranks - 1) < _SAME:
        return f"{ranks} times"
    return f"1/{ranks} of" if abs(told / trusted * ranks - 1) < _SAME else ""


_SCALED = (
    "A mean over one rank's samples that is added up over the ranks is as many times too large as there are ranks; a "
    "sum that is divided once more is too small."
)
_ONCE = (
    "Reduce the sum of the losses and the number of samples, and divide once afterwards: "
    "`totals = torch.tensor([loss_sum, num_samples])`, `dist.all_reduce(totals)`, `totals[0] / totals[1]`."
)


def _times_hit(script: Script, one: MetricClaim, figure: tuple[str, float, float], times: str) -> Hit:
    """A mean that was multiplied or divided by the ranks; `figure`: what it is called, as told and as measured."""
    title, told, measured = figure
    again = next(repeated_sums(script), None) if told > measured else None
    training = [script.names.tree(d.loop).function(d.loop) for d in script.training.draws if d.trains]
    reducing = script.called("all_reduce", "reduce")
    # One function may hold both passes: then its reduction is the only one that the figure can be of.
    sums = [c for c in reducing if script.names.tree(c).function(c) not in training] or reducing
    ratio = computed_at(script, (one.metric.reported_as, "val_loss"))[:1]
    return Hit(
        message=f"`metrics.json` reports a validation {title} of {told:.4g}: {times} the {measured:.4g} that the saved "
        f"weights have on the same {one.on}. {again.says if again is not None else _SCALED}",
        hint=again.hint if again is not None else _ONCE,
        where=lines(script, again.nodes if again is not None else (*ratio, *sums[:2])),
        fix=again.fix if again is not None else None,
        details={"reported": told, "measured": measured},
        evidence=EvidenceKind.EVALUATION,
    )


def _contradicted(one: MetricClaim, allowed: float) -> str:
    return (
        f"`metrics.json` reports a validation {one.metric.title} of {one.said}, but the saved weights score "
        f"{one.exactly} on the same {one.on}; nothing that is reported of the last epoch, the best one or the one "
        f"that was saved is within {allowed:.3g} of that."
    )


_UNKNOWN = "The curve describes other weights or another count."
