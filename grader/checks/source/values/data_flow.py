"""Where a value goes after a line: the names it is passed on to, the places that use them, and where it has an effect.

Forward, by names, inside a function and up into those that called it. It takes more places than a value really reaches
where branches or loops part them, so a rule that looks for a place where something is *done* errs towards silence, and
one that looks for a *use* has to ask for more than that a place is listed here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, READS, Definition, ancestors, end, name_of, start, walk
from grader.checks.source.syntax.tree import Tree

_MAX_DEPTH = 3
_SAYING = {
    "print", "info", "log", "warning", "debug", "add_scalar", "add_scalars", "log_metrics", "log_metric", "write",
    "append", "set_postfix", "set_description", "update", "format",
}  # fmt: skip


def source_text(node: ast.AST) -> str:
    """`x` or `self.x` for a variable (also for an element of it), "" for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def reads_after(
    script: Script,
    variable: ast.expr,
    after: ast.AST,
    depth: int = 0,
    hands_on: Callable[[ast.expr], bool] = lambda _: True,
) -> list[ast.expr]:
    """Places that read a variable, or something made of it, once `after` has run; callers' places included.

    The target of `x /= n` is such a place, too. `hands_on`: whether what a place makes of it is to be followed.
    """
    tree = script.names.tree(after)
    scope = tree.scope(after)
    names = {source_text(variable)} - {""}
    found: dict[ast.expr, None] = {}
    for _ in range(6):
        fresh = [n for n in _loads(tree, scope, names) if n not in found and _later(tree, n, after)]
        if not fresh:
            break
        for node in fresh:
            found[node] = None
            names |= set(_handed_to(tree, node)) if hands_on(node) else set()
    function = tree.function(after)
    returned = [n for n in found if isinstance(tree.statement(n), ast.Return) and hands_on(n)]
    if function is not None and returned and depth < _MAX_DEPTH:
        for site in script.graph.sites(function):
            for node in _taken(script, site.call, depth, hands_on):
                found[node] = None
    return list(found)


def sent_on(script: Script, node: ast.expr) -> bool:
    """Whether another collective takes a value: what the others then have is whole."""
    above = script.names.tree(node).parent.get(node)
    while isinstance(above, ast.expr | ast.keyword):
        if isinstance(above, ast.Call) and above in script.collectives.direct:
            return True
        above = script.names.tree(node).parent.get(above)
    return False


def _taken(
    script: Script, call: ast.Call, depth: int, hands_on: Callable[[ast.expr], bool]
) -> Iterable[ast.expr]:
    """What becomes of a call's result: the call itself where it is used in place, or the reads of its names."""
    yield call
    tree = script.names.tree(call)
    statement = tree.statement(call)
    if isinstance(statement, ast.Return):
        function = tree.function(call)
        for site in script.graph.sites(function) if function is not None and depth < _MAX_DEPTH else ():
            yield from _taken(script, site.call, depth + 1, hands_on)
    for target in _targets(statement) if hands_on(call) else ():
        yield from reads_after(script, target, statement, depth + 1, hands_on)


def _loads(tree: Tree, scope: ast.AST, names: set[str]) -> Iterable[ast.expr]:
    for name in names:
        base, _, attribute = name.partition(".")
        if attribute:
            loads: list[ast.expr] = [
                n for n in tree.attribute_loads.get(attribute, ()) if source_text(n) == name
            ]
        else:
            loads = list(tree.loads.get(base, ()))
        yield from (n for n in loads if tree.scope(n) is scope)
        for key, made in tree.definitions.get(scope, {}).items():
            if key == name or key.startswith(f"{name}["):
                # `x /= n` reads what it changes.
                yield from (d.node.target for d in made if isinstance(d.node, ast.AugAssign))


def _later(tree: Tree, node: ast.AST, after: ast.AST) -> bool:
    if start(node) >= end(after):
        return True
    for above in ancestors(tree.parent, after):
        if isinstance(above, LOOPS) and tree.inside(node, above) and not tree.inside(node, after):
            return not _renewed(tree, source_text(node), above)
    return False


def _renewed(tree: Tree, name: str, loop: ast.AST) -> bool:
    """Whether each round of a loop gives the name a new value."""
    return any(is_fresh(name, d) and tree.inside(d.node, loop) for d in definitions(tree, loop, name))


def definitions(tree: Tree, node: ast.AST, name: str) -> list[Definition]:
    """All bindings of a name in the scope of a node."""
    return tree.definitions.get(tree.scope(node), {}).get(name, [])


def is_fresh(name: str, definition: Definition) -> bool:
    """Whether a binding gives a name a value that does not depend on the one it had."""
    if definition.kind == "augment" or definition.value is None:
        return definition.kind not in ("augment", "other")
    return not any(isinstance(n, READS) and source_text(n) == name for n in walk(definition.value))


def _handed_to(tree: Tree, node: ast.expr) -> Iterable[str]:
    """Names that get a value made of this one."""
    for target in _targets(tree.statement(node)):
        if not tree.inside(node, target):
            yield source_text(target)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        found: list[ast.expr] = []
        for target in statement.targets:
            found += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        return found
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return [statement.target]
    return []


def is_printed(script: Script, node: ast.AST) -> bool:
    """Whether a value goes into a text or a `print` on the spot, and nowhere else."""
    tree = script.names.tree(node)
    above = tree.parent.get(node)
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.JoinedStr) or (isinstance(above, ast.Call) and name_of(above) == "print"):
            return True
        above = tree.parent.get(above)
    return False


def all_parts(script: Script, node: ast.expr, but: Callable[[ast.AST], bool] | None = None) -> list[ast.AST]:
    """All that has a part in a value, as `values.parts`, and also by attributes that another method has set."""
    found = dict.fromkeys(script.values.parts(node, but))
    for attribute in [n for n in found if isinstance(n, ast.Attribute)]:
        for origin in script.values.origins(attribute):
            found |= dict.fromkeys(script.values.parts(origin, but))
    return list(found)


def use_of(script: Script, node: ast.expr) -> ast.AST | None:
    """Where a value has an effect: it is said, recorded, returned from the script's sight, or decides what happens."""
    tree = script.names.tree(node)
    child: ast.AST = node
    above = tree.parent.get(node)
    while above is not None and not isinstance(child, ast.stmt):
        if isinstance(above, ast.Call) and child is not above.func and name_of(above) in _SAYING:
            return above
        if isinstance(above, ast.Call) and child is not above.func and name_of(above) == "step":
            return above
        if isinstance(above, ast.If | ast.While) and child is above.test:
            return above if _decides(script, tree, above) else None
        child, above = above, tree.parent.get(above)
    return None


def _decides(script: Script, tree: Tree, branch: ast.If | ast.While) -> bool:
    if script.conditions.of(branch.test).partial:
        return False
    if any(tree.inside(e, branch) for e in tree.exits):
        return True
    return any(bool(script.collectives.inside(s)) for s in branch.body)
