"""Helpers that keep the rank of their first call, which comes before the group is joined: 0 on every rank, ever after.

`dist.get_rank() if dist.is_initialized() else 0` is right where it is asked anew each time. Under `functools.cache`, or
stored where it is empty, the first answer stays. Claims only what one unconditional call above the start shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from grader.checks.source.causes import CauseInText
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.ranks.early_ranks import ASKING, JOINED, order_of, paths_to
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Function, end, steps_up
from grader.model.fix import Edit, Fix

_CACHES = ("functools.lru_cache", "functools.cache")
_CHOOSING = (ast.If, ast.IfExp, ast.While)


def cached_ranks(script: Script) -> Iterator[CauseInText]:
    """All of them, in the order of the files: the first call, what keeps its answer, and where that asks."""
    starts = script.calls(INIT)
    if not starts or not script.calls(JOINED):
        return
    for function in script.graph.functions:
        kept = next(iter(_keeping(script, function)), None)
        asked = _asks(script, function if isinstance(kept, ast.expr) else kept) if kept is not None else None
        if kept is None or asked is None:
            continue
        paths = [path for site in script.graph.sites(function) for path in paths_to(script, site.call)]
        early = [p for p in paths if all(order_of(script, p, s) < 0 for s in starts) and _surely(script, p)]
        late = [p for p in paths if any(order_of(script, p, s) > 0 for s in starts)]
        if early and late:
            first = _begins(script, early[0], starts[0])
            yield CauseInText(
                (first, kept, asked, starts[0]),
                f"{script.at(first)} asks `{function.name}` before {script.at(starts[0])} joins the group, and "
                f"{script.at(kept)} keeps the answer, {script.quote(kept)}: each rank takes itself for the only one, "
                f"rank 0 of 1, whenever it asks again, as at {script.at(late[0][-1])}. Guards and files then go by it.",
                f"{_anew(script, function, kept)}: asking each time costs next to nothing. Or join the group above "
                f"{script.at(first)}.",
                _undecorated(script, kept),
            )


def _anew(script: Script, function: Function, kept: ast.expr | ast.Assign) -> str:
    if isinstance(kept, ast.Assign):
        return f"Let `{function.name}` return what {script.quote(kept.value)} gives, and keep nothing of it"
    return f"Take `@{ast.unparse(kept)}` off `{function.name}`"


def _undecorated(script: Script, kept: ast.expr | ast.Assign) -> Fix | None:
    if isinstance(kept, ast.Assign) or end(kept)[0] != kept.lineno:
        return None
    edit = Edit(script.names.tree(kept).path, kept.lineno, 1, kept.lineno + 1, 1, "")
    return Fix("Asks for the rank anew each time.", (edit,))


def _keeping(script: Script, function: Function) -> Iterable[ast.expr | ast.Assign]:
    """What keeps the first answer of a function: a decorator, or `if held is None: held = …` for a name of the file."""
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if script.names.qualified(named) in _CACHES:
            yield decorator
    tree = script.names.tree(function)
    shared = {name for n in function.body if isinstance(n, ast.Global) for name in n.names}
    for branch in tree.ifs:
        if tree.function(branch) is not function:
            continue
        tested = {n.id for n in ast.walk(branch.test) if isinstance(n, ast.Name)} & shared
        for statement in branch.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and isinstance(target, ast.Name) and target.id in tested:
                yield statement


def _asks(script: Script, node: ast.AST | None) -> ast.Call | None:
    """The call that asks the group for a rank or a size, where something else is taken without a group."""
    work: list[ast.AST] = [node] if node is not None else []
    seen: set[ast.AST] = set()
    asked: ast.Call | None = None
    tests = False
    while work:
        one = work.pop(0)
        for call in script.names.tree(one).calls_within(one) if one not in seen else ():
            name = script.names.qualified(call.func)
            asked = call if asked is None and name in ASKING else asked
            tests = tests or name == JOINED
            work += script.graph.targets(call)
        seen.add(one)
    return asked if tests else None


def _surely(script: Script, path: tuple[ast.AST, ...]) -> bool:
    """Whether nothing on the way decides if a path is gone; what stands at module level runs."""
    for node in path:
        tree = script.names.tree(node)
        function = tree.function(node)
        around = steps_up(tree.parent, node, function) if function is not None else ()
        if any(isinstance(above, _CHOOSING) and child is not above.test for child, above in around):
            return False
    return True


def _begins(script: Script, path: tuple[ast.AST, ...], started: ast.Call) -> ast.AST:
    """Where a path leaves the way to the start of the group."""
    for other in paths_to(script, started):
        for one, another in zip(path, other, strict=False):
            if one is not another:
                return one
    return path[0]
