"""Numbers written where a rank or the number of ranks belongs, and whether the script's own spawning agrees with them.

Literals in a branch for one process alone are right and not collected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.sites import SPAWNS
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN, ancestors, name_of, start, steps_up, whole
from grader.checks.source.training_loops import SAMPLER
from grader.checks.source.values.reaching_assignments import is_main_block
from grader.model.finding import Severity

_VARIABLES = {"WORLD_SIZE": "the number of processes", "RANK": "the rank", "LOCAL_RANK": "the local rank"}


@dataclass(frozen=True, slots=True)
class Literal:
    """One number.

    Attributes:
        node: the call, slice or division that it stands in. says: what it is taken for, a clause.
        asked: number of processes that it asks for, None where it says something else.
        severity: None for the rule's own.
    """

    node: ast.AST
    says: str
    asked: int | None = None
    severity: Severity | None = None


def literals(script: Script) -> Iterable[Literal]:
    """All of them, in the order of the text, at most one per line."""
    found: dict[tuple[str, int], Literal] = {}
    for one in sorted(_all(script), key=lambda x: (script.location(x.node).path, start(x.node))):
        if not script.guards.alone(one.node):
            where = script.location(one.node)
            found.setdefault((where.path, where.line), one)
    return found.values()


def _all(script: Script) -> Iterable[Literal]:
    spawned = _spawned(script)
    for call in script.calls(INIT):
        backend = script.argument(call, "backend")
        if backend is None or script.values.constant(backend) != "fake":
            yield from _group(script, call, spawned)
    for sampler in script.calls(SAMPLER):
        size, rank = _number(script, sampler, "num_replicas"), _number(script, sampler, "rank")
        if size is not None and size != spawned and not (size == 1 and rank == 0):
            yield Literal(sampler, f"the data are always dealt out to {size} ranks, however many there are")
        elif rank is not None and size != 1:
            yield Literal(sampler, f"every rank takes the shard of rank {rank}")
    yield from _environment(script)
    if spawned is None:
        yield from _strides(script)
        yield from _divisions(script)
    elif "cuda" in {w for t in script.trees for w in t.constants} or script.mentioned("cuda"):
        for call in script.calls(*SPAWNS):
            number = script.argument(call, "nprocs")
            if isinstance(number, ast.Constant) and number.value == spawned and spawned > 1:
                text = f"{spawned} processes are started, however many GPUs there are"
                yield Literal(call, text, None, Severity.HINT)


def _group(script: Script, call: ast.Call, spawned: int | None) -> Iterable[Literal]:
    size, rank = _number(script, call, "world_size"), _number(script, call, "rank")
    if size == 1 and _in_handler(script, call):
        return  # the launcher's variables are missing: there is one process
    if size is not None and size > 0 and spawned is not None:
        if size != spawned and script.guards.partial(call) is None:
            text = f"the group waits for {size} processes, but the script starts {spawned}"
            yield Literal(call, text, size, Severity.ERROR)
    elif size is not None and size > 0:
        yield Literal(call, f"the group waits for {size} processes, however many were started", size)
    elif rank is not None and rank >= 0 and script.guards.partial(call) is None:
        yield Literal(call, f"every process says that it is rank {rank}")


def _in_handler(script: Script, node: ast.AST) -> bool:
    around = ancestors(script.names.tree(node).parent, node)
    return any(isinstance(above, ast.ExceptHandler) for above in around)


def _spawned(script: Script) -> int | None:
    """How many processes the script itself starts, where that is one literal number."""
    numbers = {
        script.values.constant(n) for c in script.calls(*SPAWNS) if (n := script.argument(c, "nprocs"))
    }
    number = numbers.pop() if len(numbers) == 1 else None
    if number is None or number is UNKNOWN:
        starts = [s.call for s in script.graph.spawn_sites if name_of(s.call) == "Process"]
        return _rounds(script, starts[0]) if starts else None
    return number if isinstance(number, int) else None


def _rounds(script: Script, call: ast.Call) -> int | None:
    """`for rank in range(4): Process(…)`."""
    tree = script.names.tree(call)
    above: ast.AST | None = tree.parent.get(call)
    while above is not None and not isinstance(above, ast.For | ast.ListComp):
        above = tree.parent.get(above)
    source = (
        above.iter if isinstance(above, ast.For) else above.generators[0].iter if above is not None else None
    )
    if (
        isinstance(source, ast.Call)
        and script.names.qualified(source.func) == "range"
        and len(source.args) == 1
    ):
        number = script.values.constant(source.args[0])
        return number if isinstance(number, int) else None
    return None


def _number(script: Script, call: ast.Call, name: str) -> int | None:
    given = script.given(call, name)
    if given is None:
        return None
    number = script.values.constant(given)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _environment(script: Script) -> Iterable[Literal]:
    """`os.environ["WORLD_SIZE"] = "2"`, unless only where nothing has set it."""
    for target, variable in environment_writes(script):
        value = script.values.constant(target.value)
        if variable in _VARIABLES and isinstance(value, str | int) and not falls_back(script, target):
            said = f"it overrides {_VARIABLES[variable]} that the launcher has set"
            number = whole(value) if isinstance(value, str) else value
            asks = variable == "WORLD_SIZE" and type(number) is int and number >= 0
            yield Literal(target, said, number if asks else None)


def environment_writes(script: Script) -> Iterable[tuple[ast.Assign, str]]:
    """`os.environ["X"] = …`, with the variable's name."""
    for tree in script.trees:
        for node in tree.attribute_loads.get("environ", ()):
            above = tree.parent[node]
            statement = tree.parent.get(above)
            if isinstance(statement, ast.Tuple):
                # `os.environ["X"], os.environ["Y"] = …`
                statement = tree.parent.get(statement)
                targets = [e for t in getattr(statement, "targets", ()) for e in getattr(t, "elts", ())]
            else:
                targets = getattr(statement, "targets", [])
            if isinstance(above, ast.Subscript) and isinstance(statement, ast.Assign) and above in targets:
                variable = script.ranks.environment(above)
                if variable:
                    yield statement, variable


def falls_back(script: Script, node: ast.AST) -> bool:
    """Whether a line runs only where the launcher's variables are missing, or another launcher's are there."""
    tree = script.names.tree(node)
    for child, above in steps_up(tree.parent, node):
        # The main block runs under every launcher, too; where it starts the ranks itself, there is no other one.
        every = is_main_block(above) and not (script.calls(*SPAWNS) or script.called("Process"))
        if isinstance(above, ast.If) and child is not above.test and not every:
            words = {
                w.value
                for w in ast.walk(above.test)
                if isinstance(w, ast.Constant) and isinstance(w.value, str)
            }
            reads = {script.ranks.environment(n) for n in ast.walk(above.test)} - {""}
            if words or reads or script.guards.alone(node):
                return True
        if isinstance(above, ast.ExceptHandler):
            return True
    return False


def _strides(script: Script) -> Iterable[Literal]:
    """`indices[rank::2]`, `range(rank, n, 2)`."""
    for tree in script.trees:
        for node in tree.slices:
            part = node.slice
            if isinstance(part, ast.Slice) and part.lower is not None and part.step is not None:
                yield from _stride(script, node, part.lower, part.step)
    for call in script.calls("range", "itertools.islice"):
        if len(call.args) >= 3:
            yield from _stride(script, call, call.args[-3], call.args[-1])


def _stride(script: Script, node: ast.AST, first: ast.expr, step: ast.expr) -> Iterable[Literal]:
    number = script.values.constant(step)
    if script.ranks.rank(first) > 1 and isinstance(number, int) and number > 1:
        yield Literal(node, f"the data are always dealt out to {number} ranks, however many there are")


def _divisions(script: Script) -> Iterable[Literal]:
    """`dist.all_reduce(x)`, then `x /= 2`: an average over a number of ranks that is written down."""
    for call, name in script.collectives.direct.items():
        operation = script.argument(call, "op") if name == "all_reduce" else UNKNOWN
        tensor = script.argument(call, "tensor")
        if not isinstance(tensor, ast.Name) or (operation is not None and name_of(operation) != "SUM"):
            continue
        tree = script.names.tree(call)
        scope = tree.scope(call)
        for load in (
            *tree.loads.get(tensor.id, ()),
            *_augmented(tree.definitions.get(scope, {}).get(tensor.id, ())),
        ):
            above = load if isinstance(load, ast.AugAssign) else tree.parent.get(load)
            divides = isinstance(above, ast.BinOp | ast.AugAssign) and isinstance(above.op, ast.Div)
            if not divides or tree.scope(load) is not scope or start(load) < start(call):
                continue
            by = above.right if isinstance(above, ast.BinOp) else getattr(above, "value", None)
            number = script.values.constant(by) if by is not load else None
            if (
                isinstance(number, int)
                and not isinstance(number, bool)
                and 2 <= number <= 64
                and above is not None
            ):
                yield Literal(above, f"the sum over all ranks is divided by {number}, however many there are")


def _augmented(found: Iterable[object]) -> list[ast.AugAssign]:
    nodes = (getattr(d, "node", None) for d in found)
    return [n for n in nodes if isinstance(n, ast.AugAssign)]
