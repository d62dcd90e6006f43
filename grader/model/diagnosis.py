"""Why a run ended badly, told to the learner: one explanation per attempt, beside the raw log and never instead of it.

It decides nothing: verdicts stand on the record, points on findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grader.model.finding import Location


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The known way in which a run died or stood still.

    Attributes:
        id: stable short name of the explanation, such as `port_in_use`; `unknown` never appears, None is used instead.
        title: a few words, such as "Rank 1 raised an exception while the others waited for it".
        explanation: two sentences: what happened (ranks, call, numbers), and why that ends a run of several processes.
        hint: what to write instead, code between backquotes.
        where: places in the submission, the cause first, then where other ranks waited.
        ranks: ranks that caused it, sorted; empty where all did.
        details: JSON-able facts behind it (exception type and text, expected and found shapes, …).
    """

    id: str
    title: str
    explanation: str
    hint: str
    where: tuple[Location, ...] = ()
    ranks: tuple[int, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
