"""Switches of the exchange of gradients: what is told to them, and when.

FSDP2 has methods, `set_requires_gradient_sync` and its like; DDP an attribute, `require_backward_grad_sync`. What they
were last told holds until they are told otherwise, so only places that come before the backward pass of their own
round are read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.ranks.rank_tests import Conditions
from grader.checks.source.syntax.nodes import name_of, start
from grader.checks.source.syntax.tree import Tree

_METHODS = ("set_requires_gradient_sync", "set_requires_all_reduce")
_ATTRIBUTE = "require_backward_grad_sync"


@dataclass(frozen=True, slots=True)
class Switch:
    """One place that tells a switch something.

    Attributes:
        node: the call, or the assignment. told: true where the exchange is on. owner: the model. name: the switch's.
    """

    node: ast.Call | ast.Assign
    told: ast.expr
    owner: ast.expr
    name: str

    def saying(self, told: str) -> str:
        """How the same switch is told something else."""
        owner = f"{ast.unparse(self.owner)}.{self.name}"
        return f"`{owner}({told})`" if isinstance(self.node, ast.Call) else f"`{owner} = {told}`"


def switches(tree: Tree) -> list[Switch]:
    """All of a file, in the order of the text."""
    found = []
    for call in tree.called(*_METHODS):
        told = call.args[0] if call.args else next((k.value for k in call.keywords), None)
        if told is not None and isinstance(call.func, ast.Attribute):
            found.append(Switch(call, told, call.func.value, call.func.attr))
    for definition in tree.attributes.get(_ATTRIBUTE, ()):
        statement = tree.statement(definition.node)
        if isinstance(statement, ast.Assign):
            owners = [
                t.value for t in statement.targets if isinstance(t, ast.Attribute) and t.attr == _ATTRIBUTE
            ]
            found += [Switch(statement, statement.value, owner, _ATTRIBUTE) for owner in owners]
    return sorted(found, key=lambda s: start(s.node))


def is_no_sync(node: ast.AST) -> bool:
    """`model.no_sync()`."""
    return isinstance(node, ast.Call) and name_of(node) == "no_sync"


def switched(
    tree: Tree, found: Accumulation, conditions: Conditions
) -> Iterable[tuple[ast.expr, bool, Switch]]:
    """Tests in an accumulating loop, what they must be for a switch to be off, and the switch."""
    for switch in switches(tree):
        if not tree.inside(switch.node, found.loop) or start(switch.node) > start(found.backward):
            continue
        statement: ast.AST = tree.statement(switch.node)
        above = tree.parent.get(statement)
        while isinstance(above, ast.If) and conditions.of(above.test).which is RankSet.DISTRIBUTED:
            if statement not in above.body:
                break
            statement, above = above, tree.parent.get(above)
        if above is found.loop and not isinstance(switch.told, ast.Constant):
            yield switch.told, False, switch
        elif isinstance(above, ast.If) and tree.parent.get(above) is found.loop and _says(switch.told, False):
            other = above.body if statement in above.orelse else above.orelse
            if any(s.name == switch.name and _says(s.told, True) for n in other for s in _of(tree, n)):
                yield above.test, statement in above.body, switch


def _of(tree: Tree, statement: ast.stmt) -> list[Switch]:
    return [s for s in switches(tree) if tree.statement(s.node) is statement]


def _says(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def turned_off(trees: Iterable[Tree]) -> list[Switch]:
    """Places that turn the exchange of gradients off, in a script where none ever turns it on."""
    found = [s for tree in trees for s in switches(tree)]
    return found if all(_says(s.told, False) for s in found) else []
