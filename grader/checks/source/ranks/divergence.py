"""Whether a value may differ between ranks: set on some ranks only, or computed from one rank's own share of the data.

Follows names, attributes, parameters, returns and the tests that an assignment stands under. A value that takes part in
a collective on its way is taken to be shared by all ranks; where the trail is lost, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.decorators import is_property
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.metrics.metric_reductions import names_reduction
from grader.checks.source.ranks.rank_expressions import PLACING
from grader.checks.source.script import Script
from grader.checks.source.syntax.attributes import Attributes
from grader.checks.source.syntax.nodes import FUNCTIONS, UNKNOWN, Definition, children, name_of, part_of, walk
from grader.checks.source.training_loops import DATA_LOADER
from grader.checks.source.values.collected_values import PROGRESS, collected_into, handed_to, shows_progress
from grader.checks.source.values.own_numbers import OwnNumbers
from grader.checks.source.values.synchronized_values import SynchronizedValues, spreads
from grader.checks.source.values.values_on_every_rank import given_on_every_rank, value_text

_MAX_DEPTH = 14
# Calls whose result does not depend on what is in their arguments.
_BLIND = {"len", "isinstance", "hasattr", "type", "callable", "range", "id"}
_MOVING = {"to", "cuda", "cpu", "type"}


@dataclass(frozen=True, slots=True)
class RankDependence:
    """Why a value differs between ranks.

    Attributes:
        kind: `guard` (set on some ranks only), `batch` (from this rank's share of the data), `clock`, `draw` (random).
        node: the assignment, the loop over the share, the reading of the clock, or the draw.
    """

    kind: str
    node: ast.AST


class Divergence:
    """Differences between ranks over all files of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._attributes = Attributes(script.trees, script.names, script.graph)
        self._known: dict[ast.AST, RankDependence | None] = {}
        self._meetings = SynchronizedValues(script)
        self._own_numbers = OwnNumbers(script)

    def of(self, node: ast.AST, depth: int = 0) -> RankDependence | None:
        """Why an expression's value may differ between ranks; None where it is the same or nobody can tell."""
        if node not in self._known:
            if depth > _MAX_DEPTH:
                return None
            self._known[node] = None
            self._known[node] = self._judge(node, depth + 1)
        return self._known[node]

    def _judge(self, node: ast.AST, depth: int) -> RankDependence | None:
        if isinstance(node, ast.Constant | ast.Lambda) or node is UNKNOWN:
            return None
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Subscript):
            if any(self._script.ranks.rank(p) for p in walk(node.slice) if isinstance(p, ast.expr)):
                return RankDependence("batch", node)
            return self._element(node, depth)
        if isinstance(node, ast.BoolOp):
            return self._first((v for v in node.values if not _is_entry(self._script, v)), depth)
        found = self._first(children(node), depth)
        if isinstance(node, ast.Compare) and any(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
            # Whether a batch is there at all is the same on all ranks, as far as anybody can tell.
            return found if found is not None and found.kind == "guard" else None
        return found

    def _first(self, nodes: Iterable[ast.AST], depth: int) -> RankDependence | None:
        found = [a for n in nodes if (a := self.of(n, depth)) is not None]
        return next((a for a in found if a.kind != "draw"), found[0] if found else None)

    def _name(self, node: ast.Name, depth: int) -> RankDependence | None:
        if self._meetings.shared(node):
            return None
        apart = self._definitions(self._script.scopes.reaching(node.id, node), node, depth)
        return apart or self._grown(node, depth)

    def _grown(self, node: ast.Name, depth: int) -> RankDependence | None:
        """What a list or a meter was fed: `losses.append(loss.item())`."""
        found = (self._first(given, depth) for given in collected_into(self._script.names.tree(node), node))
        return next((apart for apart in found if apart is not None), None)

    def _element(self, node: ast.Subscript, depth: int) -> RankDependence | None:
        """`flags[0]`: of what is stored under that key, or of the whole."""
        if isinstance(node.value, ast.Name) and not self._meetings.shared(node.value):
            keys = [repr(node.slice.value)] if isinstance(node.slice, ast.Constant) else []
            for key in (*keys, "None"):
                found = self._script.scopes.reaching(f"{node.value.id}[{key}]", node)
                apart = self._definitions(found, node, depth)
                if apart is not None:
                    return apart
        return self.of(node.value, depth)

    def _definitions(self, found: Iterable[Definition], use: ast.AST, depth: int) -> RankDependence | None:
        found = tuple(found)
        if any(self._receives(d) for d in found):
            return None
        everywhere = given_on_every_rank(self._script, found)
        for definition in found:
            part = part_of(definition) if definition.kind == "assign" and everywhere else None
            repeats = part is not None and value_text(part) in everywhere
            if (repeats or shows_progress(definition)) and self._some_ranks(definition.node, use) is not None:
                continue  # some ranks are told again what all of them were told before
            apart = self._definition(definition, use, depth)
            if apart is not None:
                return apart
        return None

    def _definition(self, definition: Definition, use: ast.AST, depth: int) -> RankDependence | None:
        if definition.kind in ("assign", "augment"):
            guard = self._some_ranks(definition.node, use)
            if guard is not None:
                return guard
            value = part_of(definition)
            if isinstance(value, ast.Call) and definition.path:
                apart = self._call(value, depth, definition.path)
            else:
                apart = self.of(value, depth) if value is not None else None
            return apart or self._tests(definition.node, use, depth)
        if definition.kind == "for" and definition.value is not None:
            return self._loop_variable(definition, depth)
        if definition.kind == "parameter":
            return self._parameter(definition, depth)
        return None

    def _receives(self, definition: Definition) -> bool:
        """`if rank != 0: stop = box[0]`, after a broadcast of `box`: the other ranks take over what one decided."""
        if definition.value is None or self._script.guards.partial(definition.node) is None:
            return False
        names = [n for n in walk(definition.value) if isinstance(n, ast.Name)]
        return any(self._meetings.shared(n) for n in names)

    def _some_ranks(self, node: ast.AST, use: ast.AST) -> RankDependence | None:
        """An assignment that some ranks make and others don't, seen from a place that all of them reach."""
        guard = self._script.guards.partial(node)
        if guard is None or not guard.condition.sure or self._script.guards.alone(node):
            return None
        theirs = {g.test for g in self._script.guards.around(use)}
        return None if guard.test in theirs else RankDependence("guard", node)

    def _tests(self, node: ast.AST, use: ast.AST, depth: int) -> RankDependence | None:
        """What the tests around an assignment or `return` depend on, those left out that the reader is under, too."""
        tree = self._script.names.tree(node)
        child, above = node, tree.parent.get(node)
        while above is not None and not isinstance(child, FUNCTIONS):
            if isinstance(above, ast.If) and child is not above.test and not tree.inside(use, above):
                apart = self.of(above.test, depth)
                if apart is not None:
                    return apart
            child, above = above, tree.parent.get(above)
        return None

    def _loop_variable(self, definition: Definition, depth: int) -> RankDependence | None:
        source, path = definition.value, definition.path
        while isinstance(source, ast.Call):
            name = self._script.names.qualified(source.func)
            if name == "enumerate" and source.args:
                if not path or path[0] == 0:
                    return None
                source, path = source.args[0], path[1:]
            elif name_of(source) in (*PROGRESS, "iter") and source.args:
                source = source.args[0]
            else:
                break
        if source is None or (
            isinstance(source, ast.Call) and self._script.names.qualified(source.func) == "range"
        ):
            return None
        return self._drawn(source) or (None if isinstance(source, ast.Call) else self.of(source, depth))

    def _drawn(self, source: ast.AST) -> RankDependence | None:
        """Batches of a loader whose data are divided among ranks; `iter(loader)` is looked through."""
        for origin in self._script.values.origins(source):
            if isinstance(origin, ast.Call):
                name = self._script.names.qualified(origin.func)
                if name == DATA_LOADER and self._script.sharding.of(origin) is Shared.YES:
                    return RankDependence("batch", origin)
                if name == "iter" and origin.args and origin.args[0] is not source:
                    return self._drawn(origin.args[0])
        return None

    def _parameter(self, definition: Definition, depth: int) -> RankDependence | None:
        parameter = definition.node
        if not isinstance(parameter, ast.arg):
            return None
        above = self._script.names.tree(parameter).parent
        function = above[above[parameter]]
        if not isinstance(function, FUNCTIONS):
            return None
        graph = self._script.graph
        given = (graph.bound(s, function, parameter.arg) for s in graph.sites(function) if not s.spawned)
        return self._first((g for g in given if g is not None and g is not UNKNOWN), depth)

    def _attribute(self, node: ast.Attribute, depth: int) -> RankDependence | None:
        """An attribute of an object: what its class stores there, and on which ranks those methods are called."""
        if self._script.names.qualified(node) is not None or self._meetings.shared(node):
            return None
        if isinstance(node.value, ast.Name):
            local = self._script.scopes.reaching(f"{node.value.id}.{node.attr}", node)
            apart = self._definitions(local, node, depth)
            if apart is not None:
                return apart
        own = self._attributes.own_class(node.value)
        owners = [own] if own else self._classes(node.value)
        if not owners and isinstance(node.value, ast.Name) and not self._meetings.shared(node.value):
            grew = self._grown(node.value, depth)
            if grew is not None:
                return grew
        for owner in owners:
            method = self._script.graph.method(owner, node.attr)
            if method is not None and is_property(method):
                return self._returned(method, node, depth)
        for tree, scope, definition in self._attributes.stores(node.attr, owners):
            if definition in self._script.scopes.reaching(definition.name, node):
                continue
            apart = self._called_by_some(scope, node)
            if apart is None:
                apart = self._definition(definition, node, depth)
                given = (
                    handed_to(self._script.names.tree(node), self._script.graph, node, owners)
                    if apart and apart.kind != "guard"
                    else ()
                )
                if given:
                    # One meter counts seconds and the next losses: what this very one was given tells.
                    apart = self._first(given, depth)
            if apart is not None and tree is not None:
                return apart
        return None

    def _called_by_some(self, function: ast.AST, use: ast.AST) -> RankDependence | None:
        sites = self._script.graph.sites(function) if isinstance(function, FUNCTIONS) else []
        if not sites or getattr(function, "name", "") == "__init__":
            return None
        found = [self._some_ranks(s.call, use) for s in sites if not s.spawned]
        return found[0] if found and all(found) else None

    def _classes(self, value: ast.expr) -> list[ast.ClassDef]:
        built = (self._script.graph.built_class(o) for o in self._script.values.origins(value))
        return [b for b in built if b is not None]

    def _call(self, node: ast.Call, depth: int, path: tuple[int, ...] = ()) -> RankDependence | None:
        script = self._script
        name = script.names.qualified(node.func)
        if own := self._own_numbers.of(node):
            return RankDependence(own, node)
        if name in _BLIND or names_reduction(name_of(node)) or node in script.collectives.direct:
            return None
        if name in ("torch.device", DATA_LOADER) or spreads(name_of(node)):
            return None
        if name is not None and any(name == f or name.startswith(f + ".") for f in script.names.foreign):
            return None
        if name == "next" and node.args:
            return self._drawn(node.args[0])
        targets = [t for t in script.graph.targets(node) if isinstance(t, FUNCTIONS)]
        made = [t for t in targets if t.name != "__init__"]
        if made:
            return next((a for t in made if (a := self._returned(t, node, depth, path)) is not None), None)
        parts = [*node.args, *(k.value for k in node.keywords if k.arg not in PLACING)]
        if isinstance(node.func, ast.Attribute) and name is None:
            parts = [node.func.value] if node.func.attr in _MOVING else [node.func.value, *parts]
        return self._first(parts, depth)

    def _returned(
        self, function: ast.AST, use: ast.AST, depth: int, path: tuple[int, ...] = ()
    ) -> RankDependence | None:
        tree = self._script.names.tree(function)
        for made in tree.returns.get(function, ()):
            value = made.value
            if path and isinstance(value, ast.Tuple) and 0 <= path[0] < len(value.elts):
                value = value.elts[path[0]]
            if value is not None:
                apart = self.of(value, depth) or self._tests(made, use, depth)
                if apart is not None:
                    return apart
        return None


def _is_entry(script: Script, node: ast.AST) -> bool:
    """`batch.get("return_loss")`: as a truth it asks whether there is such an entry, which is the same on all ranks."""
    found = (o for o in script.values.origins(node) if isinstance(o, ast.Call) and name_of(o) == "get")
    return any(len(o.args) == 1 and isinstance(o.args[0], ast.Constant) for o in found)
