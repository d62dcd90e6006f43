"""How many rounds a lap around a ring takes, in the words of the loop that makes them.

Asked only where a scorer has seen that one is missing; it says what to write, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of

_ANY = "world_size"


def rounds(script: Script, loop: ast.AST | None, laps: int) -> str:
    """What to write at a loop that makes one round too few; `laps`: how many of them the loop makes."""
    if loop is None:
        return f"Each lap takes `{_ANY} - 1` rounds."
    head, size = _head(loop), _size(script, loop)
    takes = f"A lap takes `{size} - 1` rounds" if laps == 1 else f"Both laps take `2 * ({size} - 1)` rounds"
    written = _ranged(script, head, size, laps) or _counted(script, loop, size, laps)
    if written and written != ast.unparse(head):
        return f"{takes}: write `{written}` for {script.quote(head)} at {script.at(head)}."
    return f"{takes}: look at where the loop at {script.at(head)} leaves one out."


def _head(loop: ast.AST) -> ast.expr:
    head = loop.test if isinstance(loop, ast.While) else getattr(loop, "iter", None)
    assert isinstance(head, ast.expr), "a loop has one"
    return head


def _size(script: Script, loop: ast.AST) -> str:
    """What the script calls the number of ranks where the loop stands."""
    tree = script.names.tree(loop)
    near = [*ast.walk(_head(loop)), *ast.walk(loop), *ast.walk(tree.function(loop) or loop)]
    named = (n for n in near if isinstance(n, ast.Name | ast.Attribute) and script.ranks.world(n))
    return next((ast.unparse(n) for n in named), _ANY)


def _upto(size: str, laps: int, first: int) -> str:
    """Where a count that begins with `first` ends, itself not counted."""
    if laps == 2:
        return f"2 * ({size} - 1)" + (f" + {first}" if first else "")
    return f"{size} - 1" if first == 0 else size if first == 1 else f"{size} + {first - 1}"


def _ranged(script: Script, head: ast.expr, size: str, laps: int) -> str:
    """`range(…)` of as many rounds; "" where the loop goes over something else."""
    if (
        not isinstance(head, ast.Call)
        or name_of(head) != "range"
        or len(head.args) not in (1, 2)
        or head.keywords
    ):
        return ""
    if len(head.args) == 1:
        return f"range({_upto(size, laps, 0)})"
    first = script.values.constant(head.args[0])
    return f"range({first}, {_upto(size, laps, first)})" if type(first) is int and first >= 0 else ""


def _counted(script: Script, loop: ast.AST, size: str, laps: int) -> str:
    """`i < …` of as many rounds, where a counter goes up by one; "" for other tests."""
    test = _head(loop)
    if not isinstance(loop, ast.While) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    counter, sign = test.left, {ast.Lt: "<", ast.LtE: "<="}.get(type(test.ops[0]), "")
    if not isinstance(counter, ast.Name) or not sign:
        return ""
    begun, steps = set[object](), 0
    for definition in script.scopes.reaching(counter.id, counter):
        node = definition.node
        if isinstance(node, ast.AugAssign):
            steps += isinstance(node.op, ast.Add) and script.values.constant(node.value) == 1
        else:
            begun.add(script.values.constant(definition.value))
    first = begun.pop() if len(begun) == 1 else None
    if steps != 1 or type(first) is not int or first < (sign == "<="):
        return ""
    return f"{counter.id} {sign} {_upto(size, laps, first - (sign == '<='))}"
