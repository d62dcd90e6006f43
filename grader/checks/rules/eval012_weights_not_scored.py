"""The run left no weights that can be scored.

## What it finds
Completed runs whose weights are not there, have another name, are no plain state dict, or fit another network.

## Why it matters
The network is judged by what is in the file, on data that the script has never seen. Without the file nothing of the
training can be shown, however well it went.

## Example
```python
import os
import torch

torch.save(optimizer.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
```

## Use instead
```python
import os
import torch

torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
```

## How it is seen
By the trusted scorer, which reads the file as plain tensors. The lines are those that wrote to the output folder in the
run; where nothing was written, those of the text that would have, and the condition that kept the run from them. The
points are those for the accuracy; nothing else is taken for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import places
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, weight_saves
from grader.checks.source.files.renamed_weights import renamed_weights
from grader.checks.source.files.save_conditions import never_saved
from grader.checks.source.files.saved_weights import BetterSave, name_as_asked, weights_alone
from grader.checks.source.files.threaded_saves import saves_in_threads
from grader.checks.source.ranks.constant_rank_tests import constant_rank_tests
from grader.model.finding import EvidenceKind, Location, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("IO001", "IO005", "IO008", "SHARD003")
_SAVE = 'torch.save(model.module.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))'


def check_run(evidence: Evidence) -> Observation:
    """Flag completed runs without weights that fit the task's network."""
    from grader.model.evaluation import ArtifactProblem

    evaluation = evidence.evaluation
    if evaluation is None or not evidence.scored:
        return not_observable("Nobody looked for weights.")
    if not evidence.finished:
        return not_observable(
            "The run did not come to its end, so nothing can be said about what it would have left."
        )
    if evaluation.problem is None:
        if not evaluation.hidden:
            return not_observable("The saved weights were not scored.")
        return verified(f"`{evaluation.artifact}` was read and scored.", EvidenceKind.EVALUATION)
    guard = next((t for t in constant_rank_tests(evidence.script) if not t.on_all), None)
    where = evidence.written(evaluation.artifact) if evaluation.artifact else _saved(evidence)
    missing = evaluation.problem is ArtifactProblem.MISSING
    said = evaluation.detail or "The weights could not be scored."
    hint, fix = f"Write the network's own weights, on rank 0: `{_SAVE}`.", None
    late = next(iter(saves_in_threads(evidence.script)), None)
    never = never_saved(evidence.script) if not any(r.saves for r in evidence.trace.ranks) else None
    mismatched = evaluation.problem is ArtifactProblem.MISMATCH
    renamed = next(renamed_weights(evidence.script), None) if mismatched else None
    if missing and guard is not None and not where:
        said = (
            f"{said} {evidence.script.at(guard.node)} lets no rank through: {evidence.script.quote(guard.node)} "
            "is never true."
        )
        hint, fix, where = guard.hint, guard.fix, (evidence.script.location(guard.node),)
    elif late is not None:
        said = (
            f"{said} {evidence.script.at(late.start)} leaves the saving to a thread that nobody waits for: the process "
            "ends before it has written."
        )
        hint, fix = (
            f"Wait for it before the script ends, or save without a thread: `{late.written}`.",
            late.fix,
        )
        where = (evidence.script.location(late.start), *(where or ()))
    elif missing and never is not None:
        said, hint, where = f"{said} {never.says}", never.hint, lines(evidence.script, never.nodes)
    elif renamed is not None:
        said, hint, fix = f"{said} {renamed.says}", renamed.hint, renamed.fix
        where = (*lines(evidence.script, renamed.nodes), *(where or ()))
    elif missing and where:
        said = f"{said} `{where[0].path}:{where[0].line}` writes into that folder under another name."
        hint, fix = _better(evidence, name_as_asked(evidence.script, where), hint)
    elif evaluation.problem is ArtifactProblem.NOT_FINITE:
        hint = (
            "Print the loss of each step and find the first that is no number: a smaller learning rate, warm-up or "
            "`torch.nn.utils.clip_grad_norm_` before the step keep it finite."
        )
    elif where and evaluation.problem in (ArtifactProblem.REFUSED, ArtifactProblem.MISMATCH):
        hint, fix = _better(evidence, weights_alone(evidence.script, where), hint)
    return flagged(
        Hit(
            message=said,
            hint=hint,
            fix=fix,
            where=where or lines(evidence.script, weight_saves(evidence.script)),
            details={"problem": str(evaluation.problem), "file": evaluation.artifact},
            evidence=EvidenceKind.EVALUATION,
        )
    )


def _better(evidence: Evidence, better: BetterSave | None, hint: str) -> tuple[str, Fix | None]:
    """The advice for a save whose text says what to write otherwise; the advice as it was where it does not."""
    if better is None:
        return hint, None
    script = evidence.script
    return (
        f"At {script.at(better.node)} write `{better.written}` instead of {script.quote(better.node)}.",
        better.fix,
    )


def _saved(evidence: Evidence) -> tuple[Location, ...]:
    """Where any rank saved anything into the output folder."""
    return places(s.site for rank in evidence.trace.ranks for s in rank.saves if s.out)
