"""Samplers that were made for another data set than the loader's: their numbers end where that one ends.

Two sets that are made of each other, or alike but for how they transform their samples, have the same numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script


def foreign_samplers(script: Script, loader: ast.Call) -> Iterator[CauseInText]:
    """Those of a loader whose data set another loader of the script has."""
    dataset = script.argument(loader, "dataset")
    for sampler in script.training.distributed_samplers(loader):
        over = script.argument(sampler, "dataset")
        if (
            not isinstance(dataset, ast.expr)
            or not isinstance(over, ast.expr)
            or _related(script, dataset, over)
        ):
            continue
        others = (
            script.argument(other, "dataset") for other in script.training.loaders() if other is not loader
        )
        if any(isinstance(other, ast.expr) and _related(script, over, other) for other in others):
            own, wrong = script.quote(dataset), script.quote(over)
            yield CauseInText(
                (sampler, loader),
                f"{script.at(sampler)} makes the sampler over {wrong}, and {script.at(loader)} draws from {own} with "
                f"it: its numbers end at the length of {wrong}.",
                f"Make the sampler at {script.at(sampler)} over the data set of its loader: {own} instead of {wrong}.",
            )


def _related(script: Script, one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are of one data set, or one of them is made of the other."""
    if ast.unparse(one) == ast.unparse(other):
        return True
    made, also = script.values.origins(one), script.values.origins(other)
    if any(n in script.values.closure(other) for n in made) or any(
        n in script.values.closure(one) for n in also
    ):
        return True
    return any(_alike(a, b) for a in made for b in also)


def _alike(one: ast.AST, other: ast.AST) -> bool:
    """Whether two calls build the same set: `CIFAR10(root, transform=crop)` and `CIFAR10(root, transform=plain)`."""
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return False
    return _without_transforms(one) == _without_transforms(other)


def _without_transforms(call: ast.Call) -> list[str]:
    named = sorted(ast.unparse(k) for k in call.keywords if "transform" not in (k.arg or ""))
    return [ast.unparse(call.func), *map(ast.unparse, call.args), *named]
