"""What the ranks told and what was seen from outside do not fit together.

## What it finds
Runs whose trace is missing, stops early, tells impossible things or disagrees with the kernel's and the scorer's view:
steps without CPU time, weights that nobody saved, ranks that are silent. Texts, too, that carry the data of trained
weights or of images.

## Why it matters
Some points rest on what the probe tells from inside the script's own process. They are only worth something where that
agrees with what the script cannot touch. Disagreement is no verdict: a person looks at the run before it counts.

## Example
```python
import os

os.closerange(3, 64)  # closes descriptors that the script does not own, the probe's among them
train()
```

## Use instead
```python
train()
```

## How it is seen
From outside alone: exit codes and CPU time from the kernel, write times of files, bytes between ranks, and fingerprints
of the scored weights against those that ranks saved. A run that was killed for time or memory stops its trace honestly.
Findings of this rule are for staff; the run is held for review only where honest code can't be the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.share_causes import data_of
from grader.model.finding import EvidenceKind, Location, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.REVIEW

_MOST_TOLD = 3
_COMPARED = (
    "What the ranks tell of a run is held against what the script cannot touch: exit codes, CPU time, files, bytes "
    "between ranks, the seals of the trace and the weights that were scored."
)


def _data(evidence: Evidence) -> tuple[Location, ...]:
    """What made the data that is trained on."""
    sites = [stream.site for stream in evidence.ledger.training]
    return lines(evidence.script, [n for site in sites for n in data_of(evidence.script, site)])


def check_run(evidence: Evidence) -> Observation:
    """Gather all disagreements into one finding, which says whether the run must be held."""
    from grader.checks.run.contradictions.trace_contradictions import contradictions
    from grader.checks.run.contradictions.weights_origin import foreign_samples

    found = contradictions(evidence)
    if found:
        held = any(c.held for c in found)
        return flagged(
            Hit(
                message=_message([c.fact for c in found if c.held == held], held=held),
                where=_data(evidence) if foreign_samples(evidence) else (),
                ranks=tuple(sorted({r for c in found for r in c.ranks})),
                details={
                    "holds": held,
                    "facts": [c.fact for c in found],
                    "holding_facts": [c.fact for c in found if c.held],
                    "subjects": list(dict.fromkeys(c.subject.value for c in found if c.held)),
                },
                evidence=EvidenceKind.OUTSIDE if any(c.outside for c in found) else EvidenceKind.TRACE,
            )
        )
    if not any(r.start for r in evidence.trace.ranks):
        return not_observable("The ranks told nothing that could be held against the record.")
    told = count(sum(r.num_lines for r in evidence.trace.ranks), "event")
    return verified(
        f"{told} of {count(len(evidence.trace.ranks), 'rank')} agree with what was seen from outside.",
        EvidenceKind.OUTSIDE,
    )


def _message(facts: list[str], *, held: bool) -> str:
    """What does not fit, in sentences that an instructor can weigh without opening anything else."""
    rest = len(facts) - _MOST_TOLD
    seen = " ".join(facts[:_MOST_TOLD]) + (
        f" There {'is' if rest == 1 else 'are'} {rest} more." if rest > 0 else ""
    )
    why = (
        "Honest code does not do that, so a person looks before it counts."
        if held
        else "That may well have an honest reason."
    )
    return f"{seen} {_COMPARED} {why}"
