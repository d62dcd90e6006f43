"""What a runtime that brings its own scorer offers to whoever evaluates: one conversation with it.

The scorer sees the run's files and the data under names of its own world; the words are the evaluator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ScorerFolders:
    """Where the scorer of a runtime finds things; paths of its own world."""

    visible: str
    hidden: str
    outputs: str


class RuntimeScorer(Protocol):
    """Our end of a scorer that holds what the last run left.

    Attributes:
        folders: where it finds data and outputs.
    """

    folders: ScorerFolders

    def ask(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Its answer to one request; raises InfraError when there is none within `wall_s` seconds."""
        ...
