"""One item of a task's rubric as far as the text of a script goes: seen, missing, or for a run to tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.model.task import RubricItem


class Sight(StrEnum):
    """What the text shows of one item."""

    NOT_FOUND = "not_found"
    NOT_RIGHT = "not_right"
    """It is begun, and a finding says what is wrong with it."""
    SEEN = "seen"
    RUN = "run"
    """Only a run can tell."""


@dataclass(frozen=True, slots=True)
class RubricStep:
    """One item of a task's rubric as far as the text goes.

    Attributes:
        item: the item.
        sight: what the text shows of it.
        says: why, a sentence or two for each rule that speaks, by its code ("" for what no rule asks).
    """

    item: RubricItem
    sight: Sight
    says: tuple[tuple[str, str], ...] = ()

    @property
    def lacking(self) -> bool:
        """Whether the item must be right and the text shows that it is not yet."""
        return self.item.must and self.sight in (Sight.NOT_FOUND, Sight.NOT_RIGHT)
