"""Whether what was saved is another network than the one that was trained, by the text and by what the run showed."""

from __future__ import annotations

from collections import Counter

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.run.metrics.saved_statistics import last_was_saved
from grader.checks.source.causes import CauseInText
from grader.checks.source.files.replaced_networks import replaced_networks, untrained_saves

_FEWER = 0.5
"""Share of another optimizer's steps below which the last one only tried something out."""


def other_network(evidence: Evidence) -> CauseInText | None:
    """The save of such a network; None where none is to be seen, or the trained one was in the file that was scored."""
    return _replaced(evidence) or (
        None if last_was_saved(evidence) else next(untrained_saves(evidence.script), None)
    )


def _replaced(evidence: Evidence) -> CauseInText | None:
    """A save of another network than the one that was trained, where its optimizer took far fewer steps."""
    script = evidence.script
    replaced = next(replaced_networks(script), None)
    steps = Counter(s.optimizer for r in evidence.trace.trainers[:1] for s in r.steps)
    if replaced is None or len(steps) < 2 or steps[max(steps)] >= _FEWER * max(steps.values()):
        return None
    name, bound = replaced.name, script.at(replaced.bound)
    return CauseInText(
        (replaced.bound, replaced.save, replaced.trained),
        f"{bound} binds `{name}` to another network after the training at {script.at(replaced.trained)}, and "
        f"{script.at(replaced.save)} saves that one. The last optimizer took {count(steps[max(steps)], 'step')}, "
        f"another one {max(steps.values()):,}.",
        f"Move {script.quote(replaced.save)} up, right behind the loop at {script.at(replaced.trained)}, or give "
        f"the networks that are built after it another name than `{name}`.",
    )
