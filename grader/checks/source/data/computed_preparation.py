"""Where images are normalised by numbers that the script works out from samples, and whether each rank has its own.

The task scores images with numbers of its own, and a rank's share has others than the next one's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.data.image_preparation import Preparation, preparations
from grader.checks.source.ranks.divergence import Divergence, RankDependence
from grader.checks.source.script import Script
from grader.checks.source.training_loops import DATA_LOADER


@dataclass(frozen=True, slots=True)
class ComputedPreparation:
    """One such place; `own`: why its numbers are those of one rank's samples, None where nothing says so."""

    place: Preparation
    own: RankDependence | None

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The place, and where a rank's own share comes in."""
        return (self.place.node,) if self.own is None else (self.place.node, self.own.node)

    def says(self, script: Script) -> str:
        """What it does, as a sentence."""
        node = self.place.node
        made = f"{script.at(node)} normalises images by a mean and a deviation that are"
        if self.own is None:
            return f"{made} computed from samples, {script.quote(node)}, and are not the task's."
        return (
            f"{made} computed from a rank's own samples ({script.at(self.own.node)}): each rank prepares images "
            "otherwise than the next one."
        )


def computed_preparations(script: Script) -> Iterator[ComputedPreparation]:
    """All of them."""
    found = [one for one in preparations(script) if one.computed]
    divergence = Divergence(script) if found else None
    for one in found:
        apart = (divergence.of(number) for number in one.computed) if divergence is not None else ()
        yield ComputedPreparation(one, next((a for a in apart if a is not None and a.kind == "batch"), None))


def by_own_share(script: Script) -> Iterator[ComputedPreparation]:
    """Those of a share that was picked by the rank. What is computed for each batch anew may be meant so."""
    for one in computed_preparations(script):
        drawn = (
            one.own is not None
            and script.names.qualified(getattr(one.own.node, "func", one.own.node)) == DATA_LOADER
        )
        if one.own is not None and not drawn:
            yield one
