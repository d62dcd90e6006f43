"""A result that the script hands in is not what the scorer finds.

## What it finds
Numbers in a file that the task asks for, such as a table or a gradient, that differ from what the task's own
trusted computation gives for them, or that contradict each other; and rows of other runs that were worked out of this
run's times instead of being measured.

## Why it matters
A table is read by people who were not there. If it says 500 updates where 4,000 were made, or if a gradient is that
of another batch, whatever is decided on it is decided wrongly, and nothing in the file gives it away.

## Example
```python
gradient = sum(gradients_of_ranks) / world_size  # a rank with 3 samples counts as much as one with 30
```

## Use instead
```python
gradient = sum(num / num_all * g for num, g in zip(num_samples_of_ranks, gradients_of_ranks))
```

## How it is seen
By the trusted scorer: it computes the same quantity itself and compares, with the tolerance that the task's statement
names. Where the numbers are not that, a task may compute what other ways come to (no weights, another share's samples,
gradients that were still there) and say which of them they are. The source then says only where: the line that
computes it so comes first, the line that writes the file after it. Where nobody knows the way, that is the line that
makes the number, followed from the column of its name, and what is told is what the number has to be. Weights that
differ because ranks trained on the same samples, or on the whole set, are a matter of these, and told with them.

Of a table of several runs a task says which times this run can't have measured. A script can only know them from its
text, or from a file. Where none of them stands in the text, and the source makes the column of several rows of this
run's own clock, times a factor, these rows tell of nothing that ever ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import count, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.metrics.computed_rows import computed_rows
from grader.checks.source.metrics.result_causes import cause_of, places_in
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.evaluation import Answer

SEVERITY = Severity.WARNING
# A file that cannot be read is no wrong one; where ranks measure parts, or networks of their own, a table tells of
# another figure than the one of the weights that are saved; other samples, and updates of other tensors, make others.
EXPLAINED_BY = (
    "EVAL009", "EVAL001", "DATA001", "DATA003", "GRAD001", "GRAD002", "GRAD003", "GRAD007", "GRAD011",
)  # fmt: skip

_OF_WEIGHTS = (".pt", ".pth")


def check_run(evidence: Evidence) -> Observation:
    """Pass on what the task says about each result that is not wholly right."""
    answers = evidence.evaluation.answers if evidence.evaluation is not None else {}
    told = {name: answer for name, answer in answers.items() if answer.share is not None}
    if not told:
        return not_observable("No result was handed in that anything could be held against.")
    wrong = {name: answer for name, answer in told.items() if (answer.share or 0.0) < 1}
    invented = [
        hit
        for name, answer in told.items()
        if name not in wrong and (hit := _invented(evidence, name, answer))
    ]
    if not wrong and not invented:
        return verified(
            f"{count(len(told), 'result')} agreed with the scorer's own.", EvidenceKind.EVALUATION
        )
    # One fault may be the answer to several questions; it is told once.
    alike: dict[str, list[str]] = {}
    for name, answer in wrong.items():
        alike.setdefault(answer.said, []).append(name)
    hits = [_hit(evidence, said, {name: wrong[name] for name in names}) for said, names in alike.items()]
    return flagged(*hits, *invented)


def _invented(evidence: Evidence, name: str, answer: Answer) -> Hit | None:
    """Rows of other runs, in a table that is right otherwise, that the text works out of this run's clock."""
    for column, brought in answer.brought.items():
        if nodes := computed_rows(evidence.script, column, brought):
            first = evidence.script.quote(nodes[0])
            return Hit(
                message=(
                    f"{answer.file or 'The table'} has {count(len(brought), 'row')} of other runs, and `{column}` of "
                    f"such rows is worked out of the times of this one: {first} at {evidence.script.at(nodes[0])}. "
                    "This run trained once, with the settings of its own row. What other settings take, and what they "
                    "reach, is only known of runs that were made with them: a table like this compares nothing."
                ),
                hint="Start the script once with each of the other settings, and write what it told then into the "
                "script, a row of numbers for each run. Only the row of this run is measured by it.",
                where=told_once((*lines(evidence.script, nodes), *evidence.written(answer.file))),
                details={"answers": {name: 0.0}, "files": [answer.file], "column": column},
                evidence=EvidenceKind.EVALUATION,
            )
    return None


def _hit(evidence: Evidence, said: str, answers: dict[str, Answer]) -> Hit:
    files = tuple(dict.fromkeys(answer.file for answer in answers.values() if answer.file))
    cause = cause_of(evidence.script, said)
    written = (place for file in files for place in evidence.written(file))
    named = places_in(evidence.script, said)
    return Hit(
        message=f"{said}{_ranks_apart(evidence, files)}",
        hint=cause.advice,
        where=told_once((*named, *lines(evidence.script, cause.nodes), *written)),
        details={"answers": {name: answer.share for name, answer in answers.items()}, "files": list(files)},
        evidence=EvidenceKind.EVALUATION,
    )


def _ranks_apart(evidence: Evidence, files: tuple[str, ...]) -> str:
    """Whether ranks stepped with one gradient, as a sentence after a space: where weights are wrong that says much."""
    from grader.checks.run.models.replica_comparison import compare_gradients, incomparable

    if not any(file.endswith(_OF_WEIGHTS) for file in files) or incomparable(evidence.trace):
        return ""
    found, active = compare_gradients(evidence.trace), evidence.trace.trainers
    if len(active) < 2 or not found.num_steps:
        return ""
    if found.difference is None:
        return " All ranks stepped with the same gradients, so it is wrong on all of them alike."
    apart = ranks(sorted({found.difference.ranks[0], *found.ranks}))
    return f" {apart} stepped with different gradients, at step {found.difference.step} first."
