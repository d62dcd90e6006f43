"""What a loader is meant for, as the names around it say: training, evaluation, or nobody can tell.

A guess from words, asked only where the script's own loops leave it open.
"""

from __future__ import annotations

import ast
import re

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import UNKNOWN, VARIABLES
from grader.checks.source.values.sources import Values

_TRAIN_WORD = re.compile(r"(^|_|\b)(tr|trn|train|training)(_|\b|$|set|loader)|^train", re.IGNORECASE)
_EVAL_WORD = re.compile(
    r"(^|_|\b)(val|valid|validation|eval|evaluation|test|testing|dev)(_|\b|$|set|loader)", re.IGNORECASE
)


class LoaderPurpose:
    """Words about loaders over all files."""

    def __init__(self, names: Names, calls: Calls, values: Values) -> None:
        self._names, self._calls, self._values = names, calls, values

    def of(self, loader: ast.Call) -> str:
        """`train`, `eval` or "" as the names around a loader and its data set say."""
        words: list[str] = []
        tree = self._names.tree(loader)
        above: ast.AST | None = tree.parent.get(loader)
        while isinstance(above, ast.expr):
            above = tree.parent.get(above)
        function = tree.function(loader)
        if isinstance(above, ast.Assign):
            words += [n.id if isinstance(n, ast.Name) else n.attr for n in _targets(above)]
        elif isinstance(above, ast.Return) and function is not None:
            words.append(function.name)
        dataset = self._calls.argument(loader, "dataset")
        if dataset is not None and dataset is not UNKNOWN:
            words += [dataset.id] if isinstance(dataset, ast.Name) else []
            for origin in self._values.origins(dataset):
                if isinstance(origin, ast.Call):
                    words += [
                        _said(k)
                        for k in origin.keywords
                        if k.arg in ("train", "split", "partition", "subset")
                    ]
        train = any(_TRAIN_WORD.search(w) for w in words)
        evaluate = any(_EVAL_WORD.search(w) for w in words)
        return "" if train == evaluate else ("train" if train else "eval")


def _said(keyword: ast.keyword) -> str:
    if not isinstance(keyword.value, ast.Constant):
        return ""
    value = keyword.value.value
    return str(value) if isinstance(value, str) else ("train" if value else "test")


def _targets(assign: ast.Assign) -> list[ast.Name | ast.Attribute]:
    found: list[ast.Name | ast.Attribute] = []
    for target in assign.targets:
        if isinstance(target, VARIABLES):
            found.append(target)
    return found
