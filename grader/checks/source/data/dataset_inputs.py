"""What has a part in making a data set: values, constructors of the submission's classes, and changes in place.

Goes further than `values.closure`, which follows what is returned: a data set is mostly an object that fills itself.
Knows nothing of ranks or chance.
"""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, UNKNOWN, VARIABLES, name_of, walk

_MAX_NODES = 6000
_IN_PLACE = {"shuffle", "sort", "append", "extend"}
_LISTINGS = {"os.listdir", "os.scandir", "glob.glob", "glob.iglob", "os.walk"}
_LISTING_METHODS = {"iterdir", "glob", "rglob"}


def parts_of(script: Script, node: ast.expr) -> set[ast.AST]:
    """All nodes that have a part in what an expression holds, `__init__` of its classes included."""
    found: set[ast.AST] = set()
    work: list[ast.AST] = [node]
    while work and len(found) < _MAX_NODES:
        current = work.pop()
        if current in found or current is UNKNOWN:
            continue
        parts = script.values.closure(current)
        new = parts - found
        found |= parts | {current}
        for part in new:
            if isinstance(part, ast.Call):
                work += _inside(script, part)
    return found | _changed_in_place(script, found)


def _inside(script: Script, call: ast.Call) -> list[ast.AST]:
    """Statements of the functions that a call runs while it builds something."""
    found: list[ast.AST] = []
    for target in script.graph.targets(call):
        found += getattr(target, "body", [])
    owner = script.graph.built_class(call)
    if owner is not None:
        # Methods that the constructor calls on the object itself: `self._load()`.
        for inner in script.names.tree(owner).calls_within(owner):
            if isinstance(inner.func, ast.Attribute) and name_of(inner.func.value) == "self":
                around = script.names.tree(inner).function(inner)
                if around is not None and around.name == "__init__":
                    for method in script.graph.targets(inner):
                        found += getattr(method, "body", [])
    return found


def _changed_in_place(script: Script, found: set[ast.AST]) -> set[ast.AST]:
    """Calls such as `random.shuffle(indices)` and `files.sort()` on one of the names that have a part."""
    changes: set[ast.AST] = set()
    changing = script.called(*_IN_PLACE)
    if not changing:
        return changes
    subjects = {c: (c.func.value, *c.args[:1]) for c in changing if isinstance(c.func, ast.Attribute)}
    meant = {name_of(part) for parts in subjects.values() for part in parts}
    variables = (n for n in found if isinstance(n, VARIABLES) and name_of(n) in meant)
    names = {(_scope(script, n), name_of(n)) for n in variables}
    for call, parts in subjects.items():
        for subject in parts:
            if name_of(subject) and (_scope(script, call), name_of(subject)) in names:
                changes.add(call)
                changes |= set(walk(call))
    return changes


def _scope(script: Script, node: ast.AST) -> ast.AST:
    return script.names.tree(node).scope(node)


def in_order(script: Script, call: ast.Call) -> bool:
    """Whether what a call returns is sorted, counted or merely asked for: then its own order plays no part."""
    tree = script.names.tree(call)
    child: ast.AST = call
    above = tree.parent.get(call)
    while isinstance(above, ast.expr | ast.comprehension | ast.keyword | ast.Starred):
        if isinstance(above, ast.Call) and child is not above.func:
            name = (script.names.qualified(above.func) or name_of(above)).rpartition(".")[2]
            if (
                name
                in ("len", "max", "min", "any", "all", "sum", "bool", "set", "frozenset", "Counter", "unique")
                or "sort" in name
            ):
                return True
        elif isinstance(above, ast.Compare | ast.UnaryOp):
            return True
        child, above = above, tree.parent.get(above)
    if isinstance(above, ast.If | ast.While | ast.Assert):
        return True
    return _sorted_later(script, above)


def _sorted_later(script: Script, statement: ast.AST | None) -> bool:
    """`files = os.listdir(…)` and afterwards `files.sort()` or `sorted(files)`; likewise what a loop gathers."""
    if statement is None:
        return False
    tree = script.names.tree(statement)
    names: set[str] = set()
    if isinstance(statement, ast.Assign):
        names = {name_of(t) for t in statement.targets}
    elif isinstance(statement, LOOPS):
        names = {
            name_of(c.func.value)
            for c in tree.calls_within(statement)
            if isinstance(c.func, ast.Attribute) and c.func.attr in ("append", "extend", "add")
        } | {
            name_of(t)
            for s in walk(statement)
            if isinstance(s, ast.Assign | ast.AugAssign)
            for t in _targets(s)
        }
    elif isinstance(statement, ast.Return):
        function = tree.function(statement)
        sites = script.graph.sites(function) if function is not None else []
        return bool(sites) and all(in_order(script, s.call) for s in sites)
    names.discard("")
    for call in script.called_like(lambda name: "sort" in name):
        subjects = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        if any(name_of(s) in names for s in subjects):
            return True
    return False


def _targets(statement: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [t.value if isinstance(t, ast.Subscript) else t for t in targets]


def lists_files(script: Script, call: ast.Call) -> bool:
    """Whether a call lists a folder, in whatever order the file system gives."""
    name = script.names.qualified(call.func)
    if name in _LISTINGS:
        return True
    return not name and isinstance(call.func, ast.Attribute) and call.func.attr in _LISTING_METHODS


def orders_set(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a set whose order something goes by."""
    if script.names.qualified(call.func) != "set" or not call.args or in_order(script, call):
        return False
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    if isinstance(above, ast.Call):
        return (script.names.qualified(above.func) or "") in ("list", "tuple", "enumerate")
    return isinstance(above, ast.comprehension) or (isinstance(above, LOOPS) and above.iter is call)  # type: ignore[union-attr]
