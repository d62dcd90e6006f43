"""Where a value comes from: through names, unpacking, attributes, parameters, helpers' returns.

`origins` follows one value to the expressions that made it; `closure` collects everything that had a part in it. Both
are cached, bounded and silent where the trail is lost. They never compute a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

from grader.checks.source.attributes import Attributes
from grader.checks.source.call_sites import Calls
from grader.checks.source.decorators import is_property
from grader.checks.source.framework_words import handed_on, unpacked
from grader.checks.source.function_results import Results
from grader.checks.source.library_names import Names
from grader.checks.source.reaching_assignments import Scopes
from grader.checks.source.syntax_nodes import (
    DISPLAYS,
    FUNCTIONS,
    READS,
    UNKNOWN,
    Definition,
    default_of,
    items_of,
    literal,
)
from grader.checks.source.syntax_tree import Tree
from grader.checks.source.value_closures import Closures

# Methods that return the object itself (or the same module elsewhere): the value stays who it is.
_SAME_OBJECT = {
    "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory", "to", "train",
    "xpu",
}  # fmt: skip
# Of an exit stack: what `with` would give.
_ENTERING = {"enter_async_context", "enter_context"}
_SAME_ARGUMENT = {"torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.jit.script"}
_LOADER_PARTS = {"sampler", "batch_sampler", "dataset"}
# What may hold another expression's value; everything else is its own origin.
_FOLLOWED = (*READS, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)
_MAX_DEPTH = 25


class Values:
    """Data flow over all files."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, scopes: Scopes, calls: Calls) -> None:
        self._trees, self._names, self._scopes, self._calls = trees, names, scopes, calls
        self._attributes = Attributes(trees, names, calls)
        self._origins: dict[ast.AST, tuple[ast.AST, ...]] = {}
        self._own_origins: dict[ast.AST, tuple[ast.AST, ...]] = {}  # with each call of a factory by itself
        self._results = Results(names, scopes, calls)
        self._closures = Closures(
            names, scopes, calls, self._results, lambda parameter: self._from_parameter(parameter, False, 1)
        )

    def origins(self, node: ast.AST, *, returns: bool = True) -> tuple[ast.AST, ...]:
        """Expressions (or parameters, loops, imports) that a value may have come from.

        With `returns=False` a call of one of the submission's own functions stays one origin per call, so that two
        models from one factory are two.
        """
        return self._follow(node, returns, 0)

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

    def parts(self, node: ast.AST) -> Iterable[ast.AST]:
        """The same one by one, for whoever stops at the first that is wrong."""
        return self._closures.parts(node)

    def _follow(self, node: ast.AST, returns: bool, depth: int) -> tuple[ast.AST, ...]:
        if not isinstance(node, _FOLLOWED):
            return (node,)
        known = self._origins if returns else self._own_origins
        if node not in known:
            if depth > _MAX_DEPTH:
                return (node,)
            known[node] = ()  # what a cycle adds to itself is nothing new
            found = dict.fromkeys(self._step(node, returns, depth + 1))
            known[node] = tuple(found) or (node,)  # round in a circle (`args.rank = rank`): itself
        return known[node]

    def _step(self, node: ast.AST, returns: bool, depth: int) -> Iterable[ast.AST]:
        if isinstance(node, ast.Name):
            definitions = () if node is UNKNOWN else self._scopes.reaching(node.id, node)
            if not definitions:
                yield node
            for definition in definitions:
                yield from self._from_definition(definition, node, returns, depth)
        elif isinstance(node, ast.Attribute):
            yield from self._from_attribute(node, returns, depth)
        elif isinstance(node, ast.Subscript):
            yield from self._from_subscript(node, returns, depth)
        elif isinstance(node, ast.Call):
            yield from self._from_call(node, returns, depth)
        elif isinstance(node, ast.IfExp):
            yield from self._follow(node.body, returns, depth)
            yield from self._follow(node.orelse, returns, depth)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            # `x or default` hands a value on; `a and b` is a condition and stays one.
            kept = [o for value in node.values for o in self._follow(value, returns, depth)]
            condition = any(isinstance(o, ast.Compare | ast.BoolOp | ast.UnaryOp) for o in kept)
            yield from (node,) if condition else kept
        elif isinstance(node, ast.NamedExpr | ast.Await):
            yield from self._follow(node.value, returns, depth)
        else:
            yield node

    def _from_definition(
        self, definition: Definition, node: ast.AST, returns: bool, depth: int
    ) -> Iterable[ast.AST]:
        value = definition.value
        if definition.kind == "parameter":
            yield from self._from_parameter(definition, returns, depth)
        elif definition.kind == "import":
            found = self._names.module_value(definition.dotted)
            if not found or found[0].kind in ("function", "class"):
                yield self._names.local(definition.dotted) or node
            for inner in found:
                if inner.kind not in ("function", "class"):
                    deeper = depth < _MAX_DEPTH
                    yield from self._from_definition(inner, node, returns, depth + 1) if deeper else (node,)
        elif definition.kind in ("assign", "with") and value is not None:
            found_values = self._follow(value, returns, depth)
            for index in definition.path:
                found_values = tuple(unpacked(self._names, o, index) for o in found_values)
            for origin in found_values:
                # An element of a display is an expression of its own and has origins of its own.
                yield from self._follow(origin, returns, depth) if definition.path else (origin,)
        elif definition.kind == "for" and value is not None:
            for origin in self._follow(value, returns, depth):
                if isinstance(origin, DISPLAYS) and not definition.path:
                    for element in origin.elts:
                        yield from self._follow(element, returns, depth)
                else:
                    yield definition.node
        else:
            yield definition.node

    def _from_parameter(self, definition: Definition, returns: bool, depth: int) -> Iterable[ast.AST]:
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
        missing = not sites
        for site in sites:
            given = self._calls.bound(site, function, parameter.arg)
            if given is None:
                missing = True
            elif given is UNKNOWN:
                yield parameter
            elif site.spawned and given is site.call:
                yield given
            else:
                yield from self._follow(given, returns, depth)
        if missing:
            if sites and (default := default_of(function, parameter)) is not None:
                yield from self._follow(default, returns, depth)
            else:
                yield parameter

    def _from_attribute(self, node: ast.Attribute, returns: bool, depth: int) -> Iterable[ast.AST]:
        if module_level := self._names.module_value(self._names.qualified(node)):
            for definition in module_level:
                yield from self._from_definition(definition, node, returns, depth)
            return
        if isinstance(node.value, ast.Name):
            reached = self._scopes.reaching(f"{node.value.id}.{node.attr}", node)
            if reached:
                for definition in reached:
                    yield from self._from_definition(definition, node, returns, depth)
                return
        owners: list[ast.ClassDef] = []
        for origin in self._follow(node.value, returns, depth):
            owner = self._calls.built_class(origin)
            if owner is not None:
                owners.append(owner)
            elif isinstance(origin, ast.Call) and node.attr in _LOADER_PARTS:
                part = self._calls.argument(origin, node.attr)
                if part is not None and self._names.qualified(origin.func) == "torch.utils.data.DataLoader":
                    yield from self._follow(part, returns, depth)
                    return
        own = self._attributes.own_class(node.value)
        for owner in [own] if own else owners:
            method = self._calls.method(owner, node.attr)
            if method is not None and is_property(method):
                for made in self._results.written(method) if returns else ():
                    yield from self._follow(made, returns, depth)
                return
        stores = list(self._attributes.stores(node.attr, [own] if own else owners))
        for tree, scope, definition in stores:
            if definition in self._scopes.at_end(tree, scope, definition.name):
                yield from self._from_definition(definition, node, returns, depth)
        if not stores:
            yield node

    def _from_subscript(self, node: ast.Subscript, returns: bool, depth: int) -> Iterable[ast.AST]:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else UNKNOWN
        if isinstance(node.value, ast.Name) and key is not UNKNOWN:
            reached = self._scopes.reaching(f"{node.value.id}[{key!r}]", node)
            if reached:
                for definition in reached:
                    yield from self._from_definition(definition, node, returns, depth)
                return
        elements = [e for origin in self._follow(node.value, returns, depth) for e in items_of(origin, key)]
        for element in elements:
            yield from self._follow(element, returns, depth)
        if not elements:
            yield node

    def _from_call(self, node: ast.Call, returns: bool, depth: int) -> Iterable[ast.AST]:
        func = node.func
        name = self._names.qualified(func)
        if isinstance(func, ast.Attribute) and func.attr in _ENTERING and len(node.args) == 1:
            yield from self._follow(node.args[0], returns, depth)
            return
        if isinstance(func, ast.Attribute) and func.attr in _SAME_OBJECT and name is None:
            yield from self._follow(func.value, returns, depth)
            return
        handed = handed_on(self._names, node)
        if (name in _SAME_ARGUMENT and node.args) or len(handed) == 1:
            yield from self._follow(node.args[0], returns, depth)
            return
        followed = False
        for target in self._calls.targets(node) if returns else ():
            for value in self._results.of(node, target):
                followed = True
                yield from self._follow(value, returns, depth)
        if not followed:
            yield node
