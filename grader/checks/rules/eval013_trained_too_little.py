"""The network has not learned enough, and nothing else is found that would explain it.

## What it finds
Completed runs whose saved weights miss what the task asks for, while the ranks did what they should: how long they
trained, at which rates, and whether the metric was still getting better when training ended.

## Why it matters
Several ranks change how often weights are updated and how far each step goes: with a larger batch there are fewer steps
in an epoch, and with the old learning rate each goes no further than before. What was enough on one device may be too
little on several.

## Example
```python
import torch

EPOCHS = 1
optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
```

## Use instead
```python
import torch

EPOCHS = 10
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
```

## How it is seen
By the trusted scorer, the steps that the probe saw and the figures that the script reports. Where the text binds the
name of the trained network to another one, whose optimizer took far fewer steps, and saves that, or saves a copy from
before the training or a network that no optimizer was given, it says so. The same goes for a text that is dealt out
sign by sign, for attention that sees what it foretells, for targets shifted twice, and for a trust ratio of an
optimizer of its own that is upside down. It is said only where no other fault is found in data, gradients, rates or the
scored file, and costs nothing beyond the metric's own points.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import epoch_counts, lines, rates_written
from grader.checks.source.data.foretold_symbols import foretold_symbols
from grader.checks.source.data.strided_streams import strided_streams
from grader.checks.source.optimisation.planned_epochs import cut_short, planned_epochs
from grader.checks.source.optimisation.trust_ratios import upside_down
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.optimisation.learning_rates import LearningRateCurve

SEVERITY = Severity.HINT
EXPLAINED_BY = (
    "DATA001", "DATA002", "DATA003", "DATA004", "DATA005", "DATA006", "DATA007", "DATA010", "DEV006",
    "EVAL001", "EVAL006", "EVAL007", "EVAL008", "EVAL011", "EVAL012", "EVAL015",
    "GRAD001", "GRAD002", "GRAD003", "GRAD004", "GRAD005", "GRAD006", "GRAD007", "GRAD008", "GRAD009", "GRAD011",
    "GRAD012", "GRAD013", "GRAD014", "GRAD018", "GRAD019",
    "OPT001", "OPT002", "OPT003", "OPT004", "OPT005", "OPT006", "OPT007", "OPT008",
    "DIST001", "DIST006", "DIST008", "DIST012", "DIST013", "IO001", "IO010",
    "SHARD001", "SHARD002", "SHARD003", "TRUST001", "TRUST002",
)  # fmt: skip
_FEW_EPOCHS = 5
_SMALL_RATE = 0.01
"""Of plain SGD; small networks that start from nothing mostly learn with ten times that."""
_WITH_EACH_STEP = 0.8
"""Share of its steps before which a rate moved, whose curve is one of steps."""
_STILL_HIGH = 0.3
"""Share of its peak that a rate has come down to by the end of every usual curve."""


_UNEXPLAINED = (
    "Nothing that was checked of its data, gradients and rates explains that: it has learned too little."
)
_UNSEEN = (
    "Nothing that was checked of its gradients and rates explains that. Each rank trained on a data set of its own, "
    "where an index stands for another sample than on other ranks: what these hold was not compared."
)
_OWN_SETS = (
    "Look at what each rank trains on first: print a few samples of each rank's data set, and compare them with those "
    "of the script that you started from."
)


def check_run(evidence: Evidence) -> Observation:
    """Say how long and how fast training went, where a target is missed."""
    from grader.checks.run.contradictions.trace_contradictions import contradictions
    from grader.checks.run.metrics.other_networks import other_network
    from grader.checks.run.metrics.score_reasons import reason_of
    from grader.checks.run.optimisation.learning_rates import curve, optimizer_places
    from grader.model.run import Ending

    evaluation, script = evidence.evaluation, evidence.script
    hidden = evaluation.hidden if evaluation is not None else {}
    if evaluation is None or not evidence.asked or evidence.record.ending is not Ending.COMPLETED:
        return not_observable("No score was held against a target.")
    metric = next((m for m in evidence.asked if not m.reached(hidden[m.name], evidence.levels[m.name])), None)
    if metric is None:
        return verified("The saved weights reach what is asked for.", EvidenceKind.EVALUATION)
    found = next((c for r in evidence.trace.trainers if (c := curve(r)) is not None), None)
    if (
        found is None
        or reason_of(evaluation, evidence.metrics, script) is not None
        or any(c.held for c in contradictions(evidence))
    ):
        return not_observable("Something else explains the score, or nobody saw how the network was trained.")
    written = lines(script, [*epoch_counts(script), *rates_written(script)])
    reported = evaluation.reported.values(metric) if evaluation.reported is not None else ()
    seen = max((len(s.epochs) for s in evidence.ledger.training if s.counts_epochs), default=0)
    cut = cut_short(script, seen) if seen else None
    epochs = min(seen, planned_epochs(script) or seen) or len(reported)
    through = f"{count(epochs, 'epoch')}{f' of {cut.planned}' if cut else ''}, " if epochs else ""
    end = (
        f" The reported {metric.title} was still getting better when it ended ({metric.text(reported[-2])}, then "
        f"{metric.text(reported[-1])})."
        if len(reported) > 1 and metric.gain(reported[-1], metric.best(reported[:-1])) > metric.readable_step
        else ""
    )
    if (other := other_network(evidence)) is not None:
        said = f"What was saved is not what was trained: {other.says}"
        where = lines(script, other.nodes)
        return flagged(Hit(said, other.hint, where, evidence=EvidenceKind.EVALUATION))
    shown = next(chain(strided_streams(script), foretold_symbols(script), upside_down(script)), None)
    own = evidence.ledger.alike is False
    why = shown.says if shown else _UNSEEN if own else _UNEXPLAINED
    return flagged(
        Hit(
            # How far off it is, is for the metric's own item to say, which rounds it for learners.
            message=f"The network misses the {metric.title} that is asked for, "
            f"{metric.asked(evidence.levels[metric.name])}. Training took {through}"
            f"{count(len(found.steps), 'step')}, at learning rates up to {found.peak:.3g}.{end} {why}",
            hint=shown.hint if shown else cut.advice if cut else _OWN_SETS if own else _advice(epochs, found),
            where=(
                *lines(script, shown.nodes if shown else ()),
                *lines(script, cut.exits if cut else ()),
                *written,
                *(p for p in optimizer_places(script) if p.line not in {w.line for w in written}),
            ),
            details={
                "epochs": epochs,
                "steps": len(found.steps),
                "peak_rate": found.peak,
                "reported": list(reported),
            },
            evidence=EvidenceKind.EVALUATION,
        )
    )


def _advice(epochs: int, found: LearningRateCurve) -> str:
    """What to try first: a number, since "more" is none."""
    compare = "compare with the script that you started from."
    if 0 < epochs < _FEW_EPOCHS:
        return f"Train longer first: 10 epochs instead of {epochs}; {compare}"
    moved = sum(a != b for a, b in pairwise(found.rates))
    if moved > _WITH_EACH_STEP * len(found.rates) and found.rates[-1] > _STILL_HIGH * found.peak:
        return (
            f"Let the learning rate come to the end of its curve first: after {count(len(found.rates), 'step')} it "
            f"stood at {found.rates[-1]:.3g}, and {found.peak:.3g} was its peak. A curve has to be as long as the "
            f"steps that each rank takes; {compare}"
        )
    if found.kind == "SGD" and found.peak < _SMALL_RATE:
        return (
            f"Take larger steps first: a rate of {10 * found.peak:.3g} instead of {found.peak:.3g}; {compare}"
        )
    return (
        f"Train for more epochs first, {2 * epochs or 'twice as many'}, or with a rate that fits the batch of all "
        f"ranks together; {compare}"
    )
