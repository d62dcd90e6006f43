"""Functions that are handed to what calls them at once: `map(reduced, totals)`, `pool.map(load, paths)`.

Only the submission's own functions count. A `map` that nobody goes through calls nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, Function
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

LAZY = {"map": 0, "filter": 0, "itertools.starmap": 0, "itertools.accumulate": 1}
"""What calls a function only when somebody goes through what it gives back → where that function stands."""
_AT_ONCE = {"functools.reduce": 0, "torch.utils._pytree.tree_map": 0, "optree.tree_map": 0}
_BY_KEY = ("sorted", "min", "max")
_POOLS = ("concurrent.futures.", "multiprocessing.pool.ThreadPool", "multiprocessing.dummy.")
_CALLING = (*{name.rpartition(".")[2] for name in (*LAZY, *_AT_ONCE)}, *_BY_KEY)


def handed_functions(
    trees: Iterable[Tree], names: Names, calls: Calls, values: Values
) -> Iterator[tuple[ast.expr, Function]]:
    """Expressions that such a call is given, each with the function that it stands for."""
    for tree in trees:
        for call in tree.called(*_CALLING):
            given = _function_of(tree, call, names, values)
            named = given
            if (
                isinstance(given, ast.Call)
                and names.qualified(given.func) == "functools.partial"
                and given.args
            ):
                named = given.args[0]
            function = _meant(named, calls) if named is not None else None
            if given is not None and function is not None:
                yield given, function


def may_hand(tree: Tree) -> bool:
    """Whether a file has a call that may be one of these: who asks about values has to read all files first."""
    return bool(tree.functions) and bool(tree.called(*_CALLING))


def _function_of(tree: Tree, call: ast.Call, names: Names, values: Values) -> ast.expr | None:
    """What a call is given to call."""
    name = names.qualified(call.func)
    if name in _BY_KEY:
        return keyword_value(call, "key")
    place = LAZY.get(name or "", _AT_ONCE.get(name or ""))
    if place is None and isinstance(call.func, ast.Attribute) and call.func.attr == "map":
        pools = (o for o in values.origins(call.func.value) if isinstance(o, ast.Call))
        place = 0 if any((names.qualified(o.func) or "").startswith(_POOLS) for o in pools) else None
    if place is None or len(call.args) <= place or (name in LAZY and left_alone(tree, call)):
        return None
    return call.args[place]


def left_alone(tree: Tree, lazy: ast.expr) -> bool:
    """Whether nobody goes through an iterator: it stands by itself, or in variables that nothing reads."""
    above = tree.parent.get(lazy)
    if isinstance(above, ast.Assign):
        return all(isinstance(t, ast.Name) and not tree.loads.get(t.id) for t in above.targets)
    return isinstance(above, ast.Expr)


def _meant(named: ast.expr, calls: Calls) -> Function | None:
    found = calls.definition(named)
    if found is None and isinstance(named, ast.Attribute):
        owner = calls.owner(named.value)
        found = calls.method(owner, named.attr) if owner is not None else None
    return found if isinstance(found, FUNCTIONS) else None
