"""Whether a variable has been through a collective before it is read: afterwards all ranks hold the same.

Asks for any call that reduces, gathers or spreads and has the variable, or its owner, among its arguments. It prefers
silence: what may have been shared counts as shared.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.metrics.metric_reductions import names_reduction
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, ancestors, end, name_of, start, walk

_SPREADING = ("broadcast", "bcast", "scatter")
_TO_ONE = "reduce"
_SHARES_NOTHING = ("barrier", "init_process_group", "DistributedDataParallel", "new_group")


@lru_cache(maxsize=4096)
def spreads(name: str) -> bool:
    """Whether a function is called after giving one rank's value to all."""
    return any(word in name.lower() for word in _SPREADING)


class SynchronizedValues:
    """Calls that share variables, over all files of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._calls: dict[ast.AST, list[ast.Call]] = {}

    def shared(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether the variable is given to a collective, or its owner told to synchronise, before it is read here."""
        tree = self._script.names.tree(node)
        scope = tree.scope(node)
        if scope not in self._calls:
            inside = tree.calls if isinstance(scope, ast.Module) else tree.calls_within(scope)
            self._calls[scope] = [c for c in inside if tree.scope(c) is scope and self._shares(c)]
        wanted = ast.unparse(node) if self._calls[scope] else ""
        for call in self._calls[scope]:
            if start(call) > end(node) and (self._made_anew(node) or not _same_loop(tree.parent, call, node)):
                continue
            parts = arguments_of(call)
            if isinstance(call.func, ast.Attribute):
                parts.append(call.func.value)
            for part in parts:
                for one in walk(part):
                    if one is not node and isinstance(one, ast.Name | ast.Attribute):
                        text = ast.unparse(one)
                        if text == wanted or wanted.startswith(text + "."):
                            return True
        return isinstance(node, ast.Attribute) and self._told_to_all(node)

    def _told_to_all(self, node: ast.Attribute) -> bool:
        """`self.saved = broadcast(self.saved)` in whichever method: what one rank sets there, all are told of."""
        stored = self._script.names.tree(node).attributes.get(node.attr, ())
        return any(
            isinstance(d.value, ast.Call)
            and not d.path
            and any(
                isinstance(n, ast.Attribute) and n.attr == node.attr for a in d.value.args for n in walk(a)
            )
            and self._shares(d.value)
            for d in stored
        )

    def _made_anew(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether each round of the loop gives the variable a new value before it is read here."""
        if not isinstance(node, ast.Name):
            return False
        parent = self._script.names.tree(node).parent
        made = self._script.scopes.reaching(node.id, node)
        return bool(made) and all(
            start(d.node) < start(node) and _same_loop(parent, d.node, node) for d in made
        )

    def _shares(self, call: ast.Call) -> bool:
        if self._script.collectives.direct.get(call) == _TO_ONE:
            return False  # the others keep what they had, or a part of the sum
        if names_reduction(name_of(call)) or spreads(name_of(call)):
            return True
        return any(c.name not in _SHARES_NOTHING for c in self._script.collectives.running.get(call, ()))


def _same_loop(parent: dict[ast.AST, ast.AST], one: ast.AST, other: ast.AST) -> bool:
    around = {above for above in ancestors(parent, one, FUNCTIONS) if isinstance(above, LOOPS)}
    return not around.isdisjoint(ancestors(parent, other, FUNCTIONS))
