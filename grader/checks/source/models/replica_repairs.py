"""What to write at a line that made replicas differ, in names that are bound there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import islice

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import ancestors, name_of, start, walk
from grader.model.call_site import Site
from grader.model.finding import Location

_COPIES = ("clone", "deepcopy")
_MAX_WAYS = 16


def statement_at(script: Script, site: Site | None) -> ast.stmt | None:
    """The innermost statement at a line."""
    for tree in script.trees:
        if site is not None and tree.path == site.path:
            around = [
                n
                for n in ast.walk(tree.root)
                if isinstance(n, ast.stmt) and n.lineno <= site.line <= (n.end_lineno or 0)
            ]
            return max(around, key=lambda n: (n.lineno, -(n.end_lineno or 0)), default=None)
    return None


def sent_from(script: Script, site: Site | None, rank: int) -> str:
    """How the weights that a rank has after a line get to all: as code where a name holds the model, else in words."""
    at = statement_at(script, site)
    model = _model_named(script, at) if at is not None else ""
    if at is None or not model:
        return f"each of the model's tensors by `dist.broadcast(tensor, src={rank})`"
    send = Edits(script).name("torch.distributed.broadcast", at)
    return f"`for tensor in {model}.state_dict().values(): {send}(tensor, src={rank})`"


def _model_named(script: Script, at: ast.stmt) -> str:
    """A name that holds a whole model where a statement stands; "" where there is none."""
    tree, scope = script.names.tree(at), script.names.tree(at).scope(at)
    for name, loads in tree.loads.items():
        meant = script.names.lookup(name, at)
        bound = meant and all(d.kind == "parameter" or d.since <= start(at) for d in meant)
        if not bound or not all(tree.scope(d.node) in (scope, tree.root) for d in meant):
            continue
        for load in loads:
            if script.names.lookup(name, load) is meant and _is_model(script, load):
                return name
    return ""


def _is_model(script: Script, node: ast.expr) -> bool:
    made = script.values.origins(node, returns=False)
    return bool(made) and all(o in script.training.wraps or script.replicas.builds_model(o) for o in made)


def made_under_test(script: Script, site: Site, test: Location) -> tuple[str, str]:
    """A name that a line uses and that a test's branch binds, and what to drop then; "" where there is none."""
    at = statement_at(script, site)
    branch = _branch(script, at, test) if at is not None else None
    if at is None or branch is None:
        return "", ""
    tree = script.names.tree(at)
    for node in walk(at):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            meant = script.names.lookup(node.id, node)
            within = all(any(tree.inside(d.node, s) for s in branch.body) for d in meant)
            if within and any(d.since < start(at) for d in meant):
                several = isinstance(branch.test, ast.BoolOp)
                return node.id, "the rank from the test" if several else "the test of the rank"
    return "", ""


def _branch(script: Script, at: ast.stmt, test: Location) -> ast.If | None:
    """The branch around a statement whose test stands at a place."""
    tree = script.names.tree(at)
    branches = (above for above in ancestors(tree.parent, at) if isinstance(above, ast.If))
    return next((b for b in branches if b.test.lineno <= test.line <= (b.test.end_lineno or 0)), None)


def copied_before_wrap(script: Script, site: Site | None) -> tuple[ast.AST, str] | None:
    """What took a copy of the weights before DDP made them equal, where a line reckons with it; and what to write."""
    at = statement_at(script, site)
    for part in _reckoned_with(script, at) if at is not None else ():
        if not isinstance(part, ast.Call) or name_of(part) not in _COPIES:
            continue
        source = part.args[0] if part.args else part.func
        for wrap in script.training.wraps:
            if not script.replicas.inner(wrap) & script.values.closure(source):
                continue
            tree = script.names.tree(wrap)
            for place in islice(ways_to(script.names, script.graph, part), _MAX_WAYS):
                same = script.names.tree(place) is tree and tree.function(place) is tree.function(wrap)
                if same and start(place) < start(wrap):
                    statement = tree.statement(place)
                    return statement, (
                        f"Move {script.quote(statement)} from {script.at(statement)} below the wrapper at "
                        f"{script.at(wrap)}: above it each rank keeps a copy of the weights that it has drawn itself."
                    )
    return None


def _reckoned_with(script: Script, at: ast.stmt) -> Iterable[ast.AST]:
    """All parts of the values in a statement, by way of what an object of the same class keeps in attributes."""
    tree = script.names.tree(at)
    nearby = tree.enclosing_class(at)
    for node in (n for n in walk(at) if isinstance(n, ast.Name)):
        for part in script.values.closure(node):
            yield part
            for kept in tree.attributes.get(part.attr, ()) if isinstance(part, ast.Attribute) else ():
                if kept.value is not None and tree.enclosing_class(kept.node) is nearby:
                    yield from script.values.closure(kept.value)
