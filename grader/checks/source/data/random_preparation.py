"""Validation sets whose images are drawn anew each time: by a crop, a flip or noise that belongs to training.

Only what torchvision names, and only where every way to the data set's transform holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import DISPLAYS, UNKNOWN, name_of

_PACKAGE = "torchvision.transforms."
_DRAWING = (
    "Random",
    "AutoAugment",
    "TrivialAugment",
    "AugMix",
    "ColorJitter",
    "RandAugment",
    "ElasticTransform",
)
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class RandomPreparation:
    """The call that makes such a set, and the first transform in it that draws."""

    made: ast.Call
    drawing: ast.Call


def random_validation(script: Script) -> Iterator[RandomPreparation]:
    """All of them, each set once."""
    told: set[ast.Call] = set()
    for loader in script.training.loaders():
        roles = script.training.roles(loader)
        for made in (
            _sets(script, script.argument(loader, "dataset"), 0)
            if roles.evaluates and not roles.trains
            else ()
        ):
            transform = script.argument(made, "transform")
            drawing = _drawing(script, transform, 0) if isinstance(transform, ast.expr) else None
            if drawing is not None and made not in told:
                told.add(made)
                yield RandomPreparation(made, drawing)


def _sets(script: Script, given: ast.expr | None, depth: int) -> Iterator[ast.Call]:
    """The calls that make a data set, looked for through the parts of it that ranks take."""
    found = script.values.origins(given) if given is not None and given is not UNKNOWN else ()
    for origin in found if len(found) == 1 else ():
        if (
            isinstance(origin, ast.Call)
            and name_of(origin) == "Subset"
            and origin.args
            and depth < _MAX_DEPTH
        ):
            yield from _sets(script, origin.args[0], depth + 1)
        elif isinstance(origin, ast.Call):
            yield origin


def _drawing(script: Script, transform: ast.expr, depth: int) -> ast.Call | None:
    """A transform that draws in any case: itself, or one of a list."""
    if transform is UNKNOWN or depth > _MAX_DEPTH:
        return None
    found = [_one(script, origin, depth) for origin in script.values.origins(transform)]
    return found[0] if found and all(found) else None


def _one(script: Script, made: ast.AST, depth: int) -> ast.Call | None:
    if not isinstance(made, ast.Call):
        return None
    name = script.names.qualified(made.func) or ""
    last = name.rpartition(".")[2]
    if not name.startswith(_PACKAGE):
        return None
    if last.startswith(_DRAWING):
        return made
    held = script.values.origins(made.args[0]) if last == "Compose" and made.args else ()
    if len(held) != 1 or not isinstance(held[0], DISPLAYS):
        return None
    inner = (_drawing(script, element, depth + 1) for element in held[0].elts)
    return next((one for one in inner if one is not None), None)
