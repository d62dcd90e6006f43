"""A file that the task asks for is missing or cannot be read.

## What it finds
Tables, gradients or other results that the task's statement asks for, besides weights, and that the run left not at
all or in a form that cannot be read: another name, a column that is missing, a cell that is no number.

## Why it matters
What nobody can read, nobody can check. Here a trusted program reads the file; at work it is the colleague's notebook,
or your own in half a year. An infinity or a NaN in a table is a training that diverged and went on as if nothing had
been.

## Example
```python
import csv

with open("results.csv", "w", newline="") as file:  # in the folder where the script happens to be started
    csv.writer(file).writerow([batch_size, loss])  # and without a line that says what the numbers are
```

## Use instead
```python
import csv
import os

with open(os.path.join(os.environ["OUTPUT_DIR"], "results.csv"), "w", newline="") as file:
    table = csv.DictWriter(file, ["batch_size", "loss"])
    table.writeheader()
    table.writerow({"batch_size": batch_size, "loss": loss})
```

## How it is seen
By the trusted scorer alone, which opens each file that the task names below `$OUTPUT_DIR` and reads it strictly. A run
that did not come to its end is not blamed for what it had no time to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING


def check_run(evidence: Evidence) -> Observation:
    """Say about each file that the task asks for what keeps it from being read."""
    evaluation = evidence.evaluation
    if evaluation is None:
        return not_observable("Nobody looked at what the run left.")
    if not evidence.finished:
        return not_observable(
            "The run did not come to its end, so nothing can be said about what it would have left."
        )
    if not evaluation.unread:
        if not evaluation.answers:
            return not_observable("The task asks for no files besides weights.")
        return verified(
            f"All files that the task asks for can be read; {count(len(evaluation.answers), 'question')} asked.",
            EvidenceKind.EVALUATION,
        )
    return flagged(
        *(
            Hit(
                message=why,
                hint=f"Write `{name}` below `$OUTPUT_DIR` as the task's statement describes it.",
                where=evidence.written(name),
                details={"file": name},
                evidence=EvidenceKind.EVALUATION,
            )
            for name, why in sorted(evaluation.unread.items())
        )
    )
