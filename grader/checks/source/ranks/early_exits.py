"""Places where one rank may leave while the others go on to meet: exits, skipped rounds, loops of unequal length.

Joins what an exit depends on (`rank_guards`, `divergence`) with what would have come after it (`collective_calls`,
training steps). An exit after which nobody meets anybody is nobody's concern.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.sites import CallSite
from grader.checks.source.calls.ways import ways_to
from grader.checks.source.causes import names_rank
from grader.checks.source.ranks.divergence import Divergence, RankDependence
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    LOOPS,
    UNKNOWN,
    Loop,
    earlier_in_block,
    later_in_block,
    name_of,
    start,
    steps_up,
)
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import OTHER_WRAPPERS

_MAX_DEPTH = 7
_ENDS = {"sys.exit", "exit", "quit", "os._exit"}
_SWALLOWED = (
    "RuntimeError",
    "Exception",
    "BaseException",
    "OutOfMemoryError",
    "ValueError",
    "FloatingPointError",
)


@dataclass(frozen=True, slots=True)
class EarlyExit:
    """One place where ranks may part.

    Attributes:
        node: the exit, or the bound of the loop that is unequal. word: `break`, `continue`, `return`, `sys.exit`,
            `loop`, `except` or `step`.
        apart: why the ranks decide differently. test: the expression that decides, None in an `except`.
        missed: the call in which the others wait: a collective or `backward`.
        fails: the process ends with an error code, on which torchrun ends the others, too.
    """

    node: ast.AST
    word: str
    apart: RankDependence
    test: ast.AST | None
    missed: ast.AST
    fails: bool = False


class EarlyExits:
    """Partings over all files of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.divergence = Divergence(script)
        self._gradients_meet = bool(
            script.training.wraps or script.training.framework or script.calls(*OTHER_WRAPPERS)
        )

    def all(self) -> Iterable[EarlyExit]:
        """Every parting, in the order of the text."""
        script = self._script
        for tree in script.trees:
            found: list[EarlyExit | None] = []
            for leave in tree.exits:
                word = "break" if isinstance(leave, ast.Break) else "continue"
                found.append(self._left(tree, leave, word, _loop_around(tree, leave)))
            for returns in tree.returns.values():
                found += [self._left(tree, r, "return", tree.function(r)) for r in returns]
            for call in script.calls(*_ENDS):
                if script.names.tree(call) is tree:
                    found.append(self._left(tree, call, "sys.exit", tree.function(call)))
            found += [self._bounded(loop) for loop in tree.loops]
            found += [p for node in tree.tries for p in self._swallowed(tree, node)]
            yield from sorted((p for p in found if p is not None), key=lambda p: start(p.node))

    def steps_left_out(self) -> Iterable[EarlyExit]:
        """Optimizer steps under a test that each rank takes by itself: only a run says whether one was left out."""
        for step in self._script.updates.steps:
            tree = self._script.names.tree(step)
            decided = self._decided(tree, step, _loop_around(tree, step))
            if decided is not None:
                yield EarlyExit(decided[1], "step", *decided, step)

    def _left(self, tree: Tree, leave: ast.AST, word: str, outer: ast.AST | None) -> EarlyExit | None:
        missed = self._missed(tree, leave, word, outer)
        decided = self._decided(tree, leave, outer) if missed is not None else None
        if missed is None or decided is None or self._is_over(tree, leave):
            return None
        apart, test = decided
        if isinstance(outer, LOOPS) and self._script.guards.partial(outer) is not None:
            return None  # the loop itself belongs to some ranks only: what it calls is for other rules
        if self._script.guards.called_by_some(leave):
            return None
        fails = word == "sys.exit" and isinstance(leave, ast.Call) and _fails(self._script, leave)
        return EarlyExit(leave, word, apart, test, missed, fails)

    def _decided(
        self, tree: Tree, leave: ast.AST, outer: ast.AST | None
    ) -> tuple[RankDependence, ast.AST] | None:
        """The innermost test on the way to an exit that may turn out differently on each rank."""
        script = self._script
        child, above = leave, tree.parent.get(leave)
        while above is not None and child is not outer and not isinstance(child, FUNCTIONS):
            test = above.test if isinstance(above, ast.If | ast.While) and child is not above.test else None
            if test is not None and not (isinstance(above, ast.While) and above is outer):
                condition = script.conditions.of(test)
                if condition.partial and condition.sure:
                    if any(script.sharding.by_rank(n) for n in ast.walk(test)):
                        return None  # `if step % world != rank: continue` deals the batches out
                    if not script.guards.alone(leave):
                        return RankDependence("guard", test), test
                apart = self.divergence.of(test)
                if apart is not None:
                    return apart, test
            child, above = above, tree.parent.get(above)
        return None

    def _missed(self, tree: Tree, leave: ast.AST, word: str, outer: ast.AST | None) -> ast.AST | None:
        """The first meeting that a rank which leaves here does not come to."""
        rest = _rest(tree, leave, outer)
        if word == "continue":
            # The next round comes all the same: only what this one still had to do is missed.
            rest = [s for s in rest if not isinstance(outer, LOOPS) or s is not outer]
        for node in rest:
            met = self.meeting(node)
            if met is not None:
                return met
        if word == "sys.exit":
            return self._missed_by_callers(leave)
        return None

    def _missed_by_callers(self, leave: ast.AST) -> ast.AST | None:
        names = self._script.names

        def leads_on(site: CallSite, function: ast.AST) -> bool:
            return not site.spawned and not names.tree(site.call).inside(site.call, function)

        for call in ways_to(names, self._script.graph, leave, most=_MAX_DEPTH, by=leads_on):
            tree = names.tree(call)
            rest = _rest(tree, call, tree.function(call)) if call is not leave else ()
            met = next((m for node in rest if (m := self.meeting(node)) is not None), None)
            if met is not None:
                return met
        return None

    def meeting(self, node: ast.AST) -> ast.AST | None:
        """The first call inside a node in which all ranks meet, gradients that DDP averages among them."""
        script = self._script
        named = [c.via for c in script.collectives.inside(node) if c.name != "init_process_group"]
        steps: list[ast.Call] = []
        if self._gradients_meet:
            inside = script.names.tree(node).calls_within(node)
            steps = [c for c in inside if c in script.training.backwards or self._trains(c)]
        guarded = script.guards.partial
        met = [c for c in (*named, *steps) if guarded(c) is None or not _tests_within(script, c, node)]
        return min(met, key=start, default=None)

    def _trains(self, call: ast.Call) -> bool:
        return any(
            isinstance(t, FUNCTIONS) and any(self._script.training.runs_backward(s) for s in t.body)
            for t in self._script.graph.targets(call)
        )

    def _is_over(self, tree: Tree, leave: ast.AST) -> bool:
        """Whether the group has been left in good order right before."""
        before = earlier_in_block(tree.parent, tree.statement(leave))
        calls = (c for s in before for c in tree.calls_within(s))
        return any("destroy" in name_of(c) or "cleanup" in name_of(c) for c in calls)

    def _bounded(self, loop: Loop) -> EarlyExit | None:
        """A loop that the ranks meet in, but whose number of rounds some of them were told otherwise."""
        script = self._script
        deciding: list[ast.expr] = []
        if isinstance(loop, ast.While):
            deciding = [loop.test]
        elif isinstance(loop.iter, ast.Call) and script.names.qualified(loop.iter.func) == "range":
            deciding = list(loop.iter.args)
        for test in deciding:
            if names_rank(script, test):
                continue  # steps counted by rank are uneven steps
            met = self.meeting(loop)
            apart = self.divergence.of(test) if met is not None and test is not UNKNOWN else None
            if apart is not None and met is not None and script.guards.partial(loop) is None:
                return EarlyExit(test, "loop", apart, test, met)
        return None

    def _swallowed(self, tree: Tree, node: ast.Try) -> Iterable[EarlyExit]:
        """`try: … backward() … except RuntimeError: continue`: an error of one rank makes it skip a step alone."""
        script = self._script
        loop = _loop_around(tree, node)
        steps = [c for s in node.body for c in tree.calls_within(s) if c in script.training.backwards]
        if loop is None or not steps or not self._gradients_meet or not script.training.runs_backward(loop):
            return
        updates = script.updates
        if not updates.entries(loop, updates.steps) and not updates.hands_on_optimizer(loop):
            return  # measures the speed of a layer, say: no rank waits for another there
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            caught = handler.type is None or any(k is not None and name_of(k) in _SWALLOWED for k in kinds)
            ends = [n for s in handler.body for n in ast.walk(s)]
            last = handler.body[-1]
            gives_up = isinstance(last, ast.Raise | ast.Return | ast.Break) or any(
                isinstance(n, ast.Call) and script.names.qualified(n.func) in _ENDS for n in ends
            )
            if caught and not gives_up and not any(script.collectives.inside(s) for s in handler.body):
                yield EarlyExit(handler, "except", RankDependence("error", handler), None, steps[0])


def leaves_a_loop(script: Script, call: ast.AST, test: ast.AST) -> bool:
    """Whether a call runs on some ranks only because the others have left a loop before it: the exit is the fault."""
    tree = script.names.tree(call)
    branch = tree.parent.get(test)
    if not isinstance(branch, ast.If) or tree.inside(call, branch) or _loop_around(tree, branch) is None:
        return False
    return not any(isinstance(s, ast.Continue) for s in (branch.body[-1], *branch.orelse[-1:]))


def _rest(tree: Tree, node: ast.AST, outer: ast.AST | None) -> list[ast.AST]:
    """Statements and loops that would run after a node inside `outer`, nearest first."""
    found: list[ast.AST] = []
    child: ast.AST = tree.statement(node)
    above = tree.parent.get(child)
    while above is not None and child is not outer:
        if isinstance(above, ast.Module) and isinstance(child, FUNCTIONS):
            break
        behind: list[ast.AST] = [*later_in_block(tree.parent, child)]
        if isinstance(above, ast.Try) and isinstance(child, ast.ExceptHandler):
            behind = [*above.handlers[above.handlers.index(child) + 1 :]]
        found += [s for s in behind if not isinstance(s, (*FUNCTIONS, ast.ClassDef))]
        if isinstance(above, LOOPS):
            found.append(above)
        if isinstance(above, FUNCTIONS):
            break
        child, above = above, tree.parent.get(above)
    return found


def _loop_around(tree: Tree, node: ast.AST) -> Loop | None:
    around = steps_up(tree.parent, node, FUNCTIONS)
    return next((above for child, above in around if isinstance(above, LOOPS) and child in above.body), None)


def _tests_within(script: Script, call: ast.AST, node: ast.AST) -> bool:
    """Whether the test that keeps a call from some ranks stands inside the node that was asked about."""
    guard = script.guards.partial(call)
    return guard is not None and script.names.tree(call).inside(guard.test, node)


def _fails(script: Script, call: ast.Call) -> bool:
    """`sys.exit(1)`, `sys.exit("message")`; not `sys.exit()` or `sys.exit(0)`."""
    code = script.values.constant(call.args[0]) if call.args else 0
    return code not in (0, None, False)
