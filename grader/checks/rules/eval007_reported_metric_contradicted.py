"""The reported accuracy is not that of the saved weights.

## What it finds
A `val_accuracy` in `metrics.json` that differs from what the trusted scorer measures with the saved weights on the
same validation set, or that is made of numbers in the text alone.

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
In the source: an accuracy or a loss of an epoch that has no part but literals and counters of loops. In the run by the
trusted scorer: it loads the saved weights and scores every sample of the validation set once. The last epoch, the best
one or the one behind which the weights were saved must have that score; where it is neither the last nor the best,
that is said. Where none has it, the scorer tries what may be meant: training mode, other files that the run left. Two
samples or one percentage point are tolerated (autocast rounds), three where ranks scored their parts with BatchNorm
statistics of their own. A loss that is the measured one times the number of ranks, or a part of it, is told. A script
that validates on samples which it sets aside from the training split reports another
figure and is not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.counted_right import share_of_right
from grader.checks.source.reported_figures import FIGURES, computed_at, entries
from grader.checks.source.score_causes import score_cause
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.evaluation import Evaluation

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
    """Compare every reported validation accuracy with the trusted one."""
    from grader.checks.run.evaluation_passes import unseen

    made_up = list(check_source(evidence.script))
    if made_up and evidence.evaluation is not None and evidence.evaluation.reported is not None:
        return flagged(*made_up)
    evaluation = evidence.evaluation
    if evaluation is None or "accuracy" not in evaluation.validation:
        return not_observable(
            "The saved weights were not scored, so there is nothing to hold the reported metric against."
        )
    if evaluation.reported is None:
        why = f": {evaluation.reported_problem}" if evaluation.reported_problem else ""
        return unseen(evidence, f"No metrics were reported{why}.")
    epochs = [e for e in evaluation.reported.epochs if "val_accuracy" in e]
    if not epochs:
        return not_observable("The reported metrics hold no `val_accuracy`.")
    if {s.split for s in evidence.ledger.validation} == {"train"}:
        return not_observable(
            "The script validates on samples of the training split, so what it reports is another figure than the one "
            "measured here."
        )
    return _compared(evidence, evaluation, epochs)


_SAME = 0.005
"""How far a loss may be from that many times another: what rounds differently is off by less."""
_SLIGHTLY = 0.05
"""Accuracy by which an older checkpoint may be worse than the report before it is more than a hint."""


def _compared(evidence: Evidence, evaluation: Evaluation, epochs: list[dict[str, float]]) -> Observation:
    from grader.checks.run.score_reasons import WHAT_TO_WRITE, reason_of
    from grader.model.evaluation import Change

    assert evaluation.reported is not None, "who asks has looked"
    trusted, values = evaluation.validation["accuracy"], evaluation.reported.accuracies
    gaps = [abs(value - trusted) for value in values]
    # An epoch that the saved weights cannot be of fits by chance alone.
    claimed, saved = _claimed_epochs(epochs), _saved_epochs(evidence, len(epochs))
    closest = min(claimed | saved, key=lambda i: (gaps[i], i not in claimed, -i))
    tolerance = _tolerance(evidence)
    fits = gaps[closest] <= tolerance
    reason = reason_of(evaluation, evidence.script)
    if fits and closest in claimed:
        times = _loss_times(evidence, evaluation, epochs[closest])
        if times:
            return flagged(_loss_hit(evidence.script, evaluation, epochs[closest]["val_loss"], times))
        return verified(
            f"Reported {values[closest]:.4g} (epoch {closest}), measured {trusted:.4f} with the saved weights.",
            EvidenceKind.EVALUATION,
        )
    if reason is not None and reason.about_images:
        return verified(
            f"Reported {values[-1]:.4g}, which the saved weights come near to on images prepared as the script "
            "prepares them. EVAL011 tells of those that are scored.",
            EvidenceKind.EVALUATION,
        )
    # As written: what is above 1 is no fraction, and whether it is a percentage the measured one decides.
    written, ranks = {epochs[i]["val_accuracy"] for i in claimed | saved}, len(evidence.trace.ranks)
    if any(one > 1 and abs(one - ranks * trusted) <= ranks * tolerance for one in written):
        return flagged(_counted_hit(evidence, trusted))
    said = _older(evaluation, closest) if fits else _contradicted(evaluation, tolerance)
    older = fits or (reason is not None and reason.other.change is Change.WEIGHTS)
    change = Change.WEIGHTS if older else reason.other.change if reason is not None else Change.NOTHING
    cause = score_cause(evidence.script) if change is Change.NOTHING else None
    made = (*(cause.nodes if cause is not None else ()), *computed_at(evidence.script))
    return flagged(
        Hit(
            message=f"{said} {reason.sentence}" if reason is not None else said,
            hint=cause.advice if cause is not None else WHAT_TO_WRITE[change],
            where=evidence.written(evaluation.artifact)
            if older
            else told_once(evidence.script.location(n) for n in made),
            details={"reported": list(values), "measured": trusted, "tolerance": tolerance},
            severity=Severity.HINT if fits and max(values) - trusted < _SLIGHTLY else None,
            evidence=EvidenceKind.EVALUATION,
        )
    )


def _counted_hit(evidence: Evidence, trusted: float) -> Hit:
    """The right answers of all ranks, divided by the samples of one."""
    ranks = len(evidence.trace.ranks)
    return Hit(
        message=f"`metrics.json` reports a validation accuracy that is {ranks} times the {trusted:.4f} which the saved "
        f"weights score: the right answers of {ranks} ranks were added up, and divided by the samples of one.",
        hint="Count the samples where the right answers are counted, add up both over the ranks in one `all_reduce`, "
        "and divide by that number instead.",
        where=told_once(evidence.script.location(n) for n in computed_at(evidence.script)),
        details={"measured": trusted, "times": ranks},
        evidence=EvidenceKind.EVALUATION,
    )


def _loss_times(evidence: Evidence, evaluation: Evaluation, epoch: dict[str, float]) -> str:
    """How often, or which part of, the trusted loss is reported, where that is the number of ranks; else ""."""
    trusted, told = evaluation.validation.get("loss", 0.0), epoch.get("val_loss", 0.0)
    ranks = len(evidence.trace.ranks)
    if ranks < 2 or trusted <= 0.0 or told <= 0.0:
        return ""
    if abs(told / trusted / ranks - 1) < _SAME:
        return f"{ranks} times"
    return f"1/{ranks} of" if abs(told / trusted * ranks - 1) < _SAME else ""


def _loss_hit(script: Script, evaluation: Evaluation, told: float, times: str) -> Hit:
    training = [script.names.tree(d.loop).function(d.loop) for d in script.training.draws if d.trains]
    sums = [
        c for c in script.called("all_reduce", "reduce") if script.names.tree(c).function(c) not in training
    ]
    return Hit(
        message=f"`metrics.json` reports a validation loss of {told:.4g}: {times} the "
        f"{evaluation.validation['loss']:.4g} that the saved weights have on the same "
        f"{count(evaluation.num_validation, 'sample')}. A mean over one rank's samples that is added up over the ranks "
        "is as many times too large as there are ranks; a sum that is divided once more is too small.",
        hint="Reduce the sum of the losses and the number of samples, and divide once afterwards: "
        "`totals = torch.tensor([loss_sum, num_samples])`, `dist.all_reduce(totals)`, `totals[0] / totals[1]`.",
        where=tuple(script.location(c) for c in sums[:2]),
        details={"reported": told, "measured": evaluation.validation["loss"]},
        evidence=EvidenceKind.EVALUATION,
    )


def _older(evaluation: Evaluation, epoch: int) -> str:
    assert evaluation.reported is not None, "who asks has looked"
    return (
        f"`{evaluation.artifact}` holds the weights of epoch {epoch}: they score "
        f"{evaluation.validation['accuracy']:.4f}, as was reported of that epoch, and `metrics.json` goes on to "
        f"{_reported(evaluation.reported.accuracies)}. The curve ends with weights that were not saved."
    )


def _reported(values: tuple[float, ...]) -> str:
    last, best = values[-1], max(values)
    return f"{last:.4g}" if last == best else f"{last:.4g} at the end and {best:.4g} at best"


def _contradicted(evaluation: Evaluation, tolerance: float) -> str:
    assert evaluation.reported is not None, "who asks has looked"
    return (
        f"`metrics.json` reports a validation accuracy of {_reported(evaluation.reported.accuracies)}, but the saved "
        f"weights score {evaluation.validation['accuracy']:.4f} on the same "
        f"{count(evaluation.num_validation, 'sample')}; nothing that is reported of the last epoch, the best one or "
        f"the one that was saved is within {tolerance:.3g} of that. The curve describes other weights or another count."
    )


def _claimed_epochs(epochs: list[dict[str, float]]) -> set[int]:
    """Epochs that a report stands for: the last, and the best by what it says."""
    every = range(len(epochs))
    found = {len(epochs) - 1, max(every, key=lambda i: epochs[i]["val_accuracy"])}
    if all("val_loss" in epoch for epoch in epochs):
        found.add(min(every, key=lambda i: epochs[i]["val_loss"]))
    return found


def _saved_epochs(evidence: Evidence, num_epochs: int) -> set[int]:
    """Epochs behind which the scored weights were written, by their fingerprint; else behind which any file was."""
    from grader.checks.run.loader_passes import passes_of

    assert evidence.evaluation is not None, "who asks has looked"
    sums = evidence.evaluation.sums
    found: set[int] = set()
    scored: set[int] = set()
    for rank in evidence.trace.ranks:
        begun = [p.batches[0].t for p in passes_of(rank) if p.kind == "training"]
        for save in rank.saves:
            epoch = sum(t < save.t for t in begun) - 1
            if save.out and 0 <= epoch < num_epochs:
                found.add(epoch)
                if sums and save.sums == sums:
                    scored.add(epoch)
    return scored or found


def _tolerance(evidence: Evidence) -> float:
    from grader.checks.run.validation_passes import divided_passes

    assert evidence.evaluation is not None
    base = evidence.evaluation.tolerance
    # Statistics of BatchNorm are each rank's own unless the wrapper sends rank 0's around before a forward pass.
    own_statistics = any(
        w.num_batchnorm > w.num_sync_batchnorm for r in evidence.trace.ranks for w in r.wraps
    )
    divided = any(divided_passes(evidence.ledger, s) for s in evidence.ledger.validation)
    return 3 * base if own_statistics and divided else base
