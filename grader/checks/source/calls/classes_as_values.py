"""A library's class that is named without being called: put into a table, chosen, handed on, and called from there.

A class in a check (`isinstance(model, DDP)`) or an annotation is told of, not used, and counts for nothing here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import ancestors
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

_CHECKS = {"isinstance", "issubclass", "typing.cast"}
_TELLING = (ast.Compare, ast.MatchClass, ast.Attribute)


def used_as_value(trees: Iterable[Tree], names: Names, dotted: str) -> list[ast.AST]:
    """Places that name a class and may hand it to whatever calls it later."""
    last = dotted.rpartition(".")[2]
    found: list[ast.AST] = []
    for tree in trees:
        imported = (a for s in tree.importing for a in s.names if a.name.rpartition(".")[2] == last)
        local = {last, *(a.asname or a.name for a in imported)}
        asked = (c for c in tree.calls if last in tree.constants and names.qualified(c) == dotted)
        read = (n for name in local for n in tree.loads.get(name, ()))
        for node in (*read, *tree.attribute_loads.get(last, ()), *asked):
            if names.qualified(node) == dotted and _is_handed_on(tree, names, node):
                found.append(node)
    return found


def named_by_path(trees: Iterable[Tree], dotted: str) -> bool:
    """Whether a text is the class's name or path, by which it may be fetched: `{"_target_": "torch.nn.parallel.…"}`."""
    last = dotted.rpartition(".")[2]
    for tree in trees:
        paths = {
            c for c in tree.constants if c == last or (c.startswith("torch.") and c.endswith(f".{last}"))
        }
        texts = (text for text in tree.texts if text.value in paths) if paths else ()
        if any(not isinstance(tree.parent.get(text), ast.Compare) for text in texts):
            return True
    return False


def called_by_value(
    trees: Iterable[Tree], names: Names, calls: Calls, values: Values, dotted: str
) -> list[ast.Call]:
    """Calls that may run a class which a value holds: `WRAPPERS[name](model)`, `(A if many else B)(model)`."""
    classes = set(used_as_value(trees, names, dotted))
    every = (c for tree in trees for c in tree.calls) if classes else ()
    unnamed = (c for c in every if names.qualified(c.func) is None and not calls.targets(c))
    return [c for c in unnamed if any(_filled_in(names, o) in classes for o in values.origins(c.func))]


def _filled_in(names: Names, origin: ast.AST) -> ast.AST:
    """What `partial(DistributedDataParallel, …)` makes a shorter form of."""
    if isinstance(origin, ast.Call) and names.qualified(origin.func) == "functools.partial" and origin.args:
        return origin.args[0]
    return origin


def _is_handed_on(tree: Tree, names: Names, node: ast.AST) -> bool:
    child = node
    for above in ancestors(tree.parent, node):
        if isinstance(above, _TELLING) or child in (
            getattr(above, "annotation", None),
            getattr(above, "returns", None),
        ):
            return False
        if isinstance(above, ast.Call):
            return above.func is not node and names.qualified(above.func) not in _CHECKS
        if isinstance(above, ast.stmt):
            break
        child = above
    return True
