"""The reported accuracy is not that of the saved weights.

## What it finds
A `val_accuracy` in `metrics.json` that differs from what the trusted scorer measures with the saved weights on the
same validation set.

## Why it matters
A learning curve is worth something only if its numbers are true. They go wrong when a metric is that of one rank's
part, is divided by the wrong count, is measured in training mode, or when other weights are saved than were measured.

## Example
```python
torch.save(model.module.state_dict(), path)
metrics = {"schema": 1, "epochs": [{"val_accuracy": num_correct / len(val_set)}]}  # one rank's count
```

## Use instead
```python
dist.all_reduce(num_correct)
torch.save(model.module.state_dict(), path)
metrics = {"schema": 1, "epochs": [{"val_accuracy": num_correct.item() / len(val_set)}]}
```

## How it is seen
By the trusted scorer alone: it loads the saved weights and scores every sample of the validation set once. Any
epoch's reported value may be the saved one's. Two samples or one percentage point are tolerated (autocast rounds),
three where ranks scored their parts with BatchNorm statistics of their own. A script that validates on samples which it
sets aside from the training split reports another figure and is not judged.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.run.validation_passes import divided_passes
from grader.model.finding import EvidenceKind, Severity

SEVERITY = Severity.WARNING
EXPLAINED_BY = (
    "EVAL001", "EVAL002", "EVAL003", "EVAL006", "EVAL008",
    # Ranks with networks of their own: what they score together is the score of none that is saved.
    "GRAD001", "GRAD002", "GRAD003", "GRAD007", "GRAD009", "OPT004",
    # Several writers: the metrics may be one's and the weights another's.
    "DIST001", "DIST006", "IO001",
)  # fmt: skip


def check_run(evidence: Evidence) -> Observation:
    """Compare every reported validation accuracy with the trusted one."""
    evaluation = evidence.evaluation
    if evaluation is None or "accuracy" not in evaluation.validation:
        return not_observable(
            "The saved weights were not scored, so there is nothing to hold the reported metric against."
        )
    if evaluation.reported is None:
        why = f": {evaluation.reported_problem}" if evaluation.reported_problem else ""
        return not_observable(f"No metrics were reported{why}.")
    values = [e["val_accuracy"] for e in evaluation.reported.epochs if "val_accuracy" in e]
    if not values:
        return not_observable("The reported metrics hold no `val_accuracy`.")
    if {s.split for s in evidence.ledger.validation} == {"train"}:
        return not_observable(
            "The script validates on samples that it sets aside from the training split, so what it reports is another "
            "figure than the one measured here."
        )
    trusted = evaluation.validation["accuracy"]
    tolerance = _tolerance(evidence)
    # Some write percentages; the unit is not what this rule is about.
    gaps = [min(abs(v - trusted), abs(v / 100 - trusted) if v > 1 else 1.0) for v in values]
    closest = min(range(len(values)), key=lambda i: (gaps[i], -i))
    if gaps[closest] <= tolerance:
        return verified(
            f"Reported {values[closest]:.4g} (epoch {closest}), measured {trusted:.4f} with the saved weights.",
            EvidenceKind.EVALUATION,
        )
    last, best = values[-1], max(values)
    reported = f"{last:.4g}" if last == best else f"{last:.4g} at the end and {best:.4g} at best"
    return flagged(
        Hit(
            message=(
                f"`metrics.json` reports a validation accuracy of {reported}, but the saved weights score "
                f"{trusted:.4f} on the "
                f"same {count(evaluation.num_validation, 'sample')}; none of {count(len(values), 'reported value')} is "
                f"within {tolerance:.3g} of that. The curve describes other weights or another count."
            ),
            hint=(
                "Count correct predictions and samples over all ranks, in `model.eval()` mode, "
                "with the same weights that are saved."
            ),
            details={"reported": values, "measured": trusted, "tolerance": tolerance},
            evidence=EvidenceKind.EVALUATION,
        )
    )


def _tolerance(evidence: Evidence) -> float:
    assert evidence.evaluation is not None
    base = max(2 / max(1, evidence.evaluation.num_validation), 0.01)
    # Statistics of BatchNorm are each rank's own unless the wrapper sends rank 0's around before a forward pass.
    own_statistics = any(
        w.num_batchnorm > w.num_sync_batchnorm for r in evidence.trace.ranks for w in r.wraps
    )
    divided = any(divided_passes(evidence.ledger, s) for s in evidence.ledger.validation)
    return 3 * base if own_statistics and divided else base
