"""Where a value comes from: through names, unpacking, attributes, parameters, helpers' returns.

`origins` follows one value to the expressions that made it; `closure` collects everything that had a part in it. Both
are cached, bounded and silent where the trail is lost. They never compute a value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence, Set
from enum import Enum

from grader.checks.source.calls.decorated_functions import DecoratedFunctions
from grader.checks.source.calls.decorators import is_property
from grader.checks.source.calls.results import Results, passed_through
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import unpacked
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.attributes import Attributes
from grader.checks.source.syntax.nodes import (
    DISPLAYS,
    FUNCTIONS,
    READS,
    UNKNOWN,
    VARIABLES,
    Definition,
    default_of,
    items_of,
    literal,
)
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.closures import Closures
from grader.checks.source.values.filled_values import Filled
from grader.checks.source.values.object_fields import ObjectFields
from grader.checks.source.values.reaching_assignments import Scopes

# What may hold another expression's value; everything else is its own origin.
_FOLLOWED = (*READS, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)
_CHOOSING = (ast.IfExp, ast.BoolOp, ast.Subscript)
_MAX_DEPTH = 25


class Way(Enum):
    """How a value is followed: into the results of functions, up to their calls, by pieces, up to a choice."""

    RESULTS = "results"
    CALLS = "calls"
    PIECES = "pieces"
    CHOICES = "choices"


class Piece(ast.AST):
    """A part of something that the submission does not make itself: an element of it, or an attribute."""


class Values:
    """Data flow over all files."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, scopes: Scopes, calls: Calls) -> None:
        self._trees, self._names, self._scopes, self._calls = trees, names, scopes, calls
        self._attributes = Attributes(trees, names, calls)
        self._fields = ObjectFields(names, calls, self._attributes)
        self.filled = Filled(names, scopes, calls)
        self._decorated = DecoratedFunctions(names, calls)
        self._origins: dict[Way, dict[ast.AST, tuple[ast.AST, ...]]] = {way: {} for way in Way}
        self._pieces: dict[tuple[ast.AST, object], Piece] = {}
        self._results = Results(names, scopes, calls)
        self._closures = Closures(
            names,
            scopes,
            self._results,
            self._fields,
            self.origins,
            lambda parameter: self._from_parameter(parameter, Way.CALLS, 1),
            lambda call: self._run_by(call, 1),
        )

    def origins(self, node: ast.AST, *, returns: bool = True) -> tuple[ast.AST, ...]:
        """Expressions (or parameters, loops, imports) that a value may have come from.

        With `returns=False` a call of one of the submission's own functions stays one origin per call, so that two
        models from one factory are two.
        """
        return self._follow(node, Way.RESULTS if returns else Way.CALLS, 0)

    def pieces(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """The same, where each part of what the submission does not make itself is a `Piece` of its own.

        Of `store, rank, number = next(rendezvous(…))` all three have one origin, but three pieces.
        """
        return self._follow(node, Way.PIECES, 0)

    def choices(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """The same, where `a if test else b` and `a or b` stay whole, and so does what a list holds by now."""
        return self._follow(node, Way.CHOICES, 0)

    def constant(self, node: ast.AST | None) -> object:
        """The value of an expression where all its origins are one and the same literal; `UNKNOWN` otherwise."""
        if node is None:
            return UNKNOWN
        found = [literal(o) for o in self.origins(node)]
        return found[0] if found and all(f is not UNKNOWN and f == found[0] for f in found) else UNKNOWN

    def closure(self, node: ast.AST) -> Set[ast.AST]:
        """All nodes that have a part in a value, as far as assignments and the submission's own functions show.

        They come in the order in which they are found, so that the first one is the same in every process.
        """
        return self._closures.of(node)

    def parts(self, node: ast.AST, but: Callable[[ast.AST], bool] | None = None) -> Iterable[ast.AST]:
        """The same one by one, for whoever stops early; `but`: nodes that are left out, with what is only theirs."""
        return self._closures.parts(node, but)

    def _follow(self, node: ast.AST, way: Way, depth: int) -> tuple[ast.AST, ...]:
        if not isinstance(node, _FOLLOWED):
            return (node,)
        known = self._origins[way]
        if node not in known:
            if depth > _MAX_DEPTH:
                return (node,)
            known[node] = ()  # what a cycle adds to itself is nothing new
            found = dict.fromkeys(self._step(node, way, depth + 1))
            known[node] = tuple(found) or (node,)  # round in a circle (`args.rank = rank`): itself
        return known[node]

    def _step(self, node: ast.AST, way: Way, depth: int) -> Iterable[ast.AST]:
        if way is Way.CHOICES and isinstance(node, _CHOOSING):
            yield node
        elif isinstance(node, ast.Name):
            definitions = () if node is UNKNOWN else self._scopes.reaching(node.id, node)
            if not definitions:
                yield node
            for definition in definitions:
                yield from self._from_definition(definition, node, way, depth)
        elif isinstance(node, ast.Attribute):
            yield from self._from_attribute(node, way, depth)
        elif isinstance(node, ast.Subscript) and not self.filled.has(node):
            yield from self._from_subscript(node, way, depth)
        elif isinstance(node, ast.Call):
            yield from self._from_call(node, way, depth)
        elif isinstance(node, ast.IfExp):
            yield from self._follow(node.body, way, depth)
            yield from self._follow(node.orelse, way, depth)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            # `x or default` hands a value on; `a and b` is a condition and stays one.
            kept = [o for value in node.values for o in self._follow(value, way, depth)]
            condition = any(isinstance(o, ast.Compare | ast.BoolOp | ast.UnaryOp) for o in kept)
            yield from (node,) if condition else kept
        elif isinstance(node, ast.NamedExpr | ast.Await):
            yield from self._follow(node.value, way, depth)
        else:
            yield node

    def _from_definition(
        self, definition: Definition, node: ast.AST, way: Way, depth: int
    ) -> Iterable[ast.AST]:
        value = definition.value
        if definition.kind == "parameter":
            yield from self._from_parameter(definition, way, depth)
        elif definition.kind == "import":
            found = self._names.module_value(definition.dotted)
            if not found or found[0].kind in ("function", "class"):
                yield self._names.local(definition.dotted) or node
            for inner in found:
                if inner.kind not in ("function", "class"):
                    deeper = depth < _MAX_DEPTH
                    yield from self._from_definition(inner, node, way, depth + 1) if deeper else (node,)
        elif definition.kind in ("assign", "with") and value is not None:
            found_values = self._follow(value, way, depth)
            for index in definition.path:
                # An element of a display is an expression of its own and has origins of its own.
                parts = [self._unpacked(o, index, way) for o in found_values]
                found_values = tuple(o for part in parts for o in self._follow(part, way, depth))
            yield from found_values
        elif definition.kind == "for" and value is not None:
            for origin in self._follow(value, way, depth):
                if isinstance(origin, DISPLAYS) and not definition.path:
                    for element in origin.elts:
                        yield from self._follow(element, way, depth)
                else:
                    yield definition.node
        else:
            yield definition.node

    def _from_parameter(self, definition: Definition, way: Way, depth: int) -> Iterable[ast.AST]:
        parameter = definition.node
        if not isinstance(parameter, ast.arg):
            yield parameter
            return
        above = self._names.tree(parameter).parent
        function = above[above[parameter]]
        if not isinstance(function, FUNCTIONS):
            yield parameter
            return
        sites = self._calls.sites(function)
        decorated = self._decorated.given(parameter)
        yield from decorated
        missing = not sites and not decorated
        for site in sites:
            given = self._calls.bound(site, function, parameter.arg)
            if given is None:
                missing = True
            elif given is UNKNOWN:
                yield parameter
            elif site.spawned and given is site.call:
                yield given
            else:
                yield from self._follow(given, way, depth)
        if missing:
            if sites and (default := default_of(function, parameter)) is not None:
                yield from self._follow(default, way, depth)
            else:
                yield parameter

    def _from_attribute(self, node: ast.Attribute, way: Way, depth: int) -> Iterable[ast.AST]:
        if module_level := self._names.module_value(self._names.qualified(node)):
            for definition in module_level:
                yield from self._from_definition(definition, node, way, depth)
            return
        if isinstance(node.value, ast.Name):
            reached = self._scopes.reaching(f"{node.value.id}.{node.attr}", node)
            if reached:
                for definition in reached:
                    yield from self._from_definition(definition, node, way, depth)
                return
        owners: list[ast.ClassDef] = []
        given: list[ast.expr] = []
        for origin in self._follow(node.value, way, depth):
            owner = self._calls.built_class(origin)
            field = self._fields.given(origin, node.attr)
            if field is not None:
                given.append(field)
            elif owner is not None:
                owners.append(owner)
        own = self._attributes.own_class(node.value)
        for owner in [own] if own else owners:
            method = self._calls.method(owner, node.attr)
            if method is not None and is_property(method):
                for made in self._results.written(method) if way is not Way.CALLS else ():
                    yield from self._follow(made, way, depth)
                return
        for field in given:
            yield from self._follow(field, way, depth)
        stores = [] if given else list(self._attributes.stores(node.attr, [own] if own else owners))
        for tree, scope, definition in stores:
            if definition in self._scopes.at_end(tree, scope, definition.name):
                yield from self._from_definition(definition, node, way, depth)
        if not stores and not given:
            whole = [own] if own else owners or self._follow(node.value, way, depth)
            yield from self._pieces_of(whole, node.attr) if way is Way.PIECES else (node,)

    def _from_subscript(self, node: ast.Subscript, way: Way, depth: int) -> Iterable[ast.AST]:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else UNKNOWN
        if isinstance(node.value, ast.Name) and key is not UNKNOWN:
            reached = self._scopes.reaching(f"{node.value.id}[{key!r}]", node)
            if reached:
                for definition in reached:
                    yield from self._from_definition(definition, node, way, depth)
                return
        elements = [e for origin in self._follow(node.value, way, depth) for e in items_of(origin, key)]
        for element in elements:
            yield from self._follow(element, way, depth)
        if not elements and way is Way.PIECES and key is not UNKNOWN:
            yield from self._pieces_of(self._follow(node.value, way, depth), key)
        elif not elements:
            yield node

    def _unpacked(self, origin: ast.AST, index: int, way: Way) -> ast.AST:
        if way is Way.CHOICES and isinstance(origin, ast.List):
            return origin
        part = unpacked(self._names, origin, index)
        return next(iter(self._pieces_of((origin,), index))) if part is origin and way is Way.PIECES else part

    def _pieces_of(self, whole: Iterable[ast.AST], key: object) -> Iterable[Piece]:
        for origin in whole:
            yield self._pieces.setdefault((origin, key), Piece())

    def _from_call(self, node: ast.Call, way: Way, depth: int) -> Iterable[ast.AST]:
        if (given := passed_through(self._names, node)) is not None:
            yield from self._follow(given, way, depth)
            return
        followed = False
        for target in self._run_by(node, depth) if way is not Way.CALLS else ():
            for value in self._results.of(node, target):
                followed = True
                yield from self._follow(value, way, depth)
        if not followed:
            yield node

    def _run_by(self, call: ast.Call, depth: int) -> Sequence[ast.AST]:
        """The submission's functions that a call runs, also by a variable that one of them was given to."""
        found = self._calls.targets(call)
        if found or not isinstance(call.func, VARIABLES) or self._names.qualified(call.func):
            return found
        return [o for o in self._follow(call.func, Way.RESULTS, depth) if isinstance(o, FUNCTIONS)]
