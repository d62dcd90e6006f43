"""Ranks and sizes that are asked for before the group is joined, by code that then takes a lone process's 0 of 1.

`dist.get_rank() if dist.is_initialized() else 0` is right in a helper that asks anew each time. What is kept of its
answer from above `init_process_group` stays that of a lone process. Claims only what every known path shows: the value
is asked for before each start of the group, and read after one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, VARIABLES, ancestors, end, literal, start, walk
from grader.model.fix import Fix

JOINED = "torch.distributed.is_initialized"
ASKING = {"torch.distributed.get_rank": "RANK", "torch.distributed.get_world_size": "WORLD_SIZE"}
_FIELD = "dataclasses.field"
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class EarlyRank:
    """One of them.

    Attributes:
        node: the expression or statement that asks; started: the call that joins the group later.
        meant: the variable in which torchrun tells the same. read: where what was kept is read.
    """

    node: ast.AST
    started: ast.Call
    meant: str
    read: ast.AST


def early_ranks(script: Script) -> list[EarlyRank]:
    """All of them, in the order of the text, each place that asks once."""
    starts = script.calls(INIT)
    if not starts or not script.calls(JOINED):
        return []
    asked = _Asked(script)
    found: dict[ast.AST, EarlyRank] = {}
    for read in (n for t in script.trees for n in walk(t.root) if isinstance(n, VARIABLES)):
        asks = asked.by(read) if isinstance(read.ctx, ast.Load) else None
        if asks is None or asks[0] in found:
            continue
        node, meant, times = asks
        reads = paths_to(script, read)
        early = all(order_of(script, path, s) < 0 for path in times for s in starts)
        kept = all(any(order_of(script, path, s) > 0 for s in starts) for path in reads)
        if times and early and reads and kept:
            found[node] = EarlyRank(node, starts[0], meant, read)
    return sorted(found.values(), key=lambda one: start(one.node))


def asked_of_launcher(script: Script, found: Iterable[EarlyRank]) -> Fix | None:
    """The same numbers read from what torchrun tells each process before the script begins."""
    edits = Edits(script)
    for one in found:
        node = one.node
        if script.graph.spawn_sites or not isinstance(node, ast.expr):
            return None
        name = script.names.qualified(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name == _FIELD:
            value = next(k.value for k in node.keywords if k.arg == "default_factory")
            told = f'lambda: int({edits.name("os.environ", node)}["{one.meant}"])'
            edits.replace(value, told)
        else:
            edits.replace(node, f'int({edits.name("os.environ", node)}["{one.meant}"])')
    return edits.fix("Asks the launcher, which has told it already.")


class _Asked:
    """Which expressions ask the group, or take a lone process's number where there is none."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def by(self, read: ast.expr) -> tuple[ast.AST, str, list[tuple[ast.AST, ...]]] | None:
        """What a variable has its value from, if that is one such expression: it, what it means, and when it runs."""
        origins = self._script.values.origins(read, returns=False)
        asks = [self._asks(o) for o in origins]
        places = {place: meant for a in asks if a is not None for place, meant in (a,)}
        known = all(a is not None or literal(o) in (0, 1) for a, o in zip(asks, origins, strict=True))
        if len(places) != 1 or not known:
            return None
        ((place, meant),) = places.items()
        return place, meant, self._times(place)

    def _asks(self, origin: ast.AST) -> tuple[ast.AST, str] | None:
        script = self._script
        if not isinstance(origin, ast.Call):
            return None
        name = script.names.qualified(origin.func) or ""
        if name in ASKING:
            place = self._fallback_around(origin)
            return (place, ASKING[name]) if place is not None else None
        if name == _FIELD:
            makers = [k.value for k in origin.keywords if k.arg == "default_factory"]
            bodies = [m.body if isinstance(m, ast.Lambda) else m for m in makers]
            meant = [self._meant(b) for b in bodies]
            return (origin, meant[0]) if len(meant) == 1 and meant[0] else None
        meant_by = self._helper(script.graph.targets(origin))
        return (origin, meant_by) if meant_by else None

    def _meant(self, made: ast.expr) -> str:
        """What a factory's result means, "" where it is no such number."""
        if isinstance(made, ast.Call):
            found = self._asks(made)
            return found[1] if found else ""
        if isinstance(made, VARIABLES):
            target = self._script.graph.definition(made)
            return self._helper((target,)) if target is not None else ""
        inner = [self._asks(o) for o in self._script.values.origins(made)]
        return next((i[1] for i in inner if i), "")

    def _helper(self, targets: Iterable[ast.AST]) -> str:
        """What a function of the submission means that gives a rank or 0, a size or 1."""
        functions = [t for t in targets if isinstance(t, FUNCTIONS)]
        if len(functions) != 1:
            return ""
        tree = self._script.names.tree(functions[0])
        tests = any(self._script.names.qualified(c.func) == JOINED for c in tree.calls_within(functions[0]))
        given = [r.value for r in tree.returns.get(functions[0], ()) if r.value is not None]
        made = [o for g in given for o in self._script.values.origins(g)] if tests else []
        names = {self._script.names.qualified(o.func) for o in made if isinstance(o, ast.Call)}
        plain = all(isinstance(o, ast.Call) or literal(o) in (0, 1) for o in made)
        alone = any(literal(o) in (0, 1) for o in made)
        return ASKING.get(names.pop() or "", "") if plain and alone and len(names) == 1 else ""

    def _fallback_around(self, call: ast.Call) -> ast.AST | None:
        """The branch, by expression or statement, that only asks where the group is joined."""
        names = self._script.names
        for above in ancestors(names.tree(call).parent, call):
            if isinstance(above, (*FUNCTIONS, ast.Lambda)):
                break
            tested = walk(above.test) if isinstance(above, ast.If | ast.IfExp) else ()
            if any(isinstance(n, ast.Call) and names.qualified(n.func) == JOINED for n in tested):
                return above
        return None

    def _times(self, place: ast.AST) -> list[tuple[ast.AST, ...]]:
        """When it runs: a field's factory whenever its class is built."""
        if isinstance(place, ast.Call) and self._script.names.qualified(place.func) == _FIELD:
            scope = self._script.names.tree(place).scope(place)
            built = self._script.graph.sites(scope) if isinstance(scope, ast.ClassDef) else []
            return [p for s in built for p in paths_to(self._script, s.call)]
        return paths_to(self._script, place)


def paths_to(script: Script, node: ast.AST, depth: int = 0) -> list[tuple[ast.AST, ...]]:
    """The calls that lead to a node from module level, outermost first, with the node last; none where unknown."""
    tree = script.names.tree(node)
    function = tree.function(node)
    if function is None:
        return [(node,)]
    if depth >= _MAX_DEPTH:
        return []
    above = (p for s in script.graph.sites(function) for p in paths_to(script, s.call, depth + 1))
    return [(*path, node) for path in above]


def order_of(script: Script, path: tuple[ast.AST, ...], started: ast.Call) -> int:
    """-1 where a path is over before the group starts on each of its own, 1 where it begins after, 0 where unsure."""
    told = {_compared(script, path, other) for other in paths_to(script, started)}
    return told.pop() if len(told) == 1 else 0


def _compared(script: Script, one: tuple[ast.AST, ...], other: tuple[ast.AST, ...]) -> int:
    for a, b in zip(one, other, strict=False):
        if a is b:
            continue
        tree = script.names.tree(a)
        if script.names.tree(b) is not tree or tree.function(a) is not tree.function(b):
            return 0
        around = takewhile(lambda n: not isinstance(n, FUNCTIONS), ancestors(tree.parent, a))
        if any(isinstance(n, ast.For | ast.While) and tree.inside(b, n) for n in around):
            return 0
        return -1 if end(a) <= start(b) else 1 if start(a) >= end(b) else 0
    return 0
