"""Who calls whom inside a submission, and with what: functions, methods, constructors, spawned processes.

Resolution is by name, import and the class an object was built from; where two classes could be meant, nobody is.
Nothing here follows values further than that: `values.sources` does, on top of this.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from grader.checks.source.calls import decorators
from grader.checks.source.calls.arguments import Arguments
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, UNKNOWN, VARIABLES, Function, part_of
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.reaching_assignments import Scopes

SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
# Methods of modules, optimizers and containers: an unknown object's `train()` is not the submission's own `train`.
_COMMON_METHODS = {
    "add", "append", "backward", "clear", "close", "copy", "cpu", "cuda", "eval", "extend", "format", "forward", "get",
    "item", "items", "join", "keys", "load", "load_state_dict", "log", "mean", "open", "parameters", "pop", "put",
    "read", "remove", "reset", "save", "set_epoch", "start", "state_dict", "step", "sum", "to", "train", "update",
    "values", "write", "zero_grad",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallSite:
    """One place that runs a function.

    Attributes:
        call: the call expression. skipped: leading parameters bound by Python or the launcher (`self`, a rank).
        args: positional arguments; keywords: the named ones.
        spawned: the function runs in a new process whose first parameter is its rank.
    """

    call: ast.Call
    args: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    skipped: int = 0
    spawned: bool = False


class Calls:
    """The call graph."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, scopes: Scopes) -> None:
        self._trees, self._names, self._scopes = trees, names, scopes
        self.argument = Arguments(names, scopes).of
        self._methods: dict[str, list[Function]] = {}
        self.functions: list[Function] = [f for tree in trees for f in tree.functions]
        self.class_of: dict[ast.AST, ast.ClassDef] = {}
        for tree in trees:
            for function in tree.functions:
                above = tree.parent[function]
                if isinstance(above, ast.ClassDef):
                    self._methods.setdefault(function.name, []).append(function)
                    self.class_of[function] = above
        self._definitions: dict[ast.AST, ast.AST | None] = {}
        self._targets: dict[ast.Call, tuple[ast.AST, ...]] = {}
        self._sites: dict[ast.AST, list[CallSite]] | None = None
        self._references: dict[ast.AST, list[ast.AST]] | None = None
        self._by_name: dict[str, list[ast.Call]] | None = None

    def named(self, *dotted: str) -> list[ast.Call]:
        """Calls whose function has one of these canonical names."""
        by_name = self._all_named()
        return [call for name in dotted for call in by_name.get(name, ())]

    def under(self, prefix: str) -> list[tuple[str, ast.Call]]:
        """Calls whose function's canonical name begins so, with that name, in the order of the text."""
        named = [(n, calls) for n, calls in self._all_named().items() if n.startswith(prefix)]
        name_of_call = {call: name for name, calls in named for call in calls}
        every = (call for tree in self._trees for call in tree.calls) if named else ()
        return [(name_of_call[call], call) for call in every if call in name_of_call]

    def _all_named(self) -> dict[str, list[ast.Call]]:
        if self._by_name is None:
            self._by_name = {}
            for tree in self._trees:
                for call in tree.calls:
                    name = self._names.qualified(call.func)
                    if name:
                        self._by_name.setdefault(name, []).append(call)
        return self._by_name

    def methods(self, name: str) -> list[Function]:
        """All methods of that name, of whatever class."""
        return self._methods.get(name, [])

    def method(self, owner: ast.ClassDef, name: str, depth: int = 5) -> Function | None:
        """A method of a class of this submission, inherited ones included."""
        found = next((f for f in self._methods.get(name, ()) if self.class_of[f] is owner), None)
        if found is None and depth:
            for base in self.bases(owner):
                found = self.method(base, name, depth - 1)
                if found is not None:
                    return found
        return found

    def bases(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """Base classes that the submission itself defines."""
        nodes = [self.definition(b) for b in owner.bases]
        return [n for n in nodes if isinstance(n, ast.ClassDef)]

    def family(self, owner: ast.ClassDef, depth: int = 5) -> list[ast.ClassDef]:
        """A class with all that it inherits from, as far as the submission defines it."""
        return [owner, *(c for b in (self.bases(owner) if depth else ()) for c in self.family(b, depth - 1))]

    def definition(self, node: ast.AST) -> ast.AST | None:
        """The function or class of this submission that an expression names."""
        if node not in self._definitions:
            self._definitions[node] = None  # ends `f = partial(g)`, `g = partial(f)`
            self._definitions[node] = self._find_definition(node)
        return self._definitions[node]

    def _find_definition(self, node: ast.AST) -> ast.AST | None:
        dotted = self._names.qualified(node)
        if dotted is None and isinstance(node, ast.Name):
            found = self._scopes.reaching(node.id, node)
            if found and found[0].kind in ("function", "class"):
                return found[0].node
            if len(found) == 1 and isinstance(found[0].value, ast.Call) and found[0].kind == "assign":
                maker = found[0].value
                if self._names.qualified(maker.func) == "functools.partial" and maker.args:
                    return self.definition(maker.args[0]) if maker.args[0] is not node else None
        return self._names.local(dotted) or decorators.class_given(self._names, node)

    def targets(self, call: ast.Call) -> tuple[ast.AST, ...]:
        """Functions of this submission that a call runs; for a class, its constructor or, without one, the class."""
        if call not in self._targets:
            self._targets[call] = ()
            self._targets[call] = getattr(call, "runs", ()) or tuple(self._find_targets(call))
        return self._targets[call]

    def built_class(self, call: ast.AST) -> ast.ClassDef | None:
        """The class of this submission that a call builds."""
        if not isinstance(call, ast.Call):
            return None
        found = self.definition(call.func)
        return found if isinstance(found, ast.ClassDef) else None

    def sites(self, function: ast.AST) -> list[CallSite]:
        """All places that run a function, spawned ones included."""
        if self._sites is None:
            self._sites = {}
            for tree in self._trees:
                for call in tree.calls:
                    for target, site in self._sites_of(call):
                        self._sites.setdefault(target, []).append(site)
        return self._sites.get(function, [])

    def references(self, function: ast.AST) -> list[ast.AST]:
        """Places that name a function without calling it, or give it to a decorator: callbacks, tables, handlers."""
        if self._references is None:
            self._references = {}
            for node in self._mentions():
                self._references.setdefault(node[0], []).append(node[1])
        return self._references.get(function, [])

    @cached_property
    def spawn_sites(self) -> list[CallSite]:
        """All places that start processes running a function of the submission."""
        return [s for f in self.functions for s in self.sites(f) if s.spawned]

    def bound(self, site: CallSite, function: Function, parameter: str) -> ast.expr | None:
        """What a parameter receives at a site: an expression, `UNKNOWN`, or None where its default stands."""
        spec = function.args
        positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        if parameter in site.keywords:
            return site.keywords[parameter]
        if parameter in positional:
            index = positional.index(parameter) - site.skipped
            if index < 0:
                return site.call if site.spawned else UNKNOWN
            given = site.args[: index + 1]
            if any(isinstance(a, ast.Starred) for a in given):
                return UNKNOWN
            if index < len(site.args):
                return site.args[index]
        elif (spec.vararg and parameter == spec.vararg.arg) or (spec.kwarg and parameter == spec.kwarg.arg):
            return UNKNOWN
        return UNKNOWN if "**" in site.keywords else None

    def _find_targets(self, call: ast.Call) -> Iterable[ast.AST]:
        func = call.func
        found = self.definition(func)
        if found is None and isinstance(func, ast.Attribute) and func.attr in self._methods:
            owner = self.owner(func.value) or self._class_meant(func.value)
            if owner is not None:
                found = self.method(owner, func.attr)
            elif func.attr not in _COMMON_METHODS and not self._names.qualified(func):
                candidates = self._methods.get(func.attr, [])
                found = candidates[0] if len(candidates) == 1 else None
                if found is not None and self._hands_on(func.value, found):
                    found = None
        if found is None and "__call__" in self._methods and isinstance(func, VARIABLES):
            owner = self.owner(func)
            found = self.method(owner, "__call__") if owner is not None else None
        if isinstance(found, ast.ClassDef):
            yield self.method(found, "__init__") or found
        elif found is not None:
            yield found

    def _hands_on(self, value: ast.expr, method: Function) -> bool:
        """`self.writer.save(…)` inside a class that has a `save` itself: a part of it, not another one of its kind."""
        tree = self._names.tree(value)
        return isinstance(value, ast.Attribute) and tree.enclosing_class(value) is self.class_of[method]

    def owner(self, value: ast.expr) -> ast.ClassDef | None:
        """The class of the object before the dot, where it is plain to see."""
        tree = self._names.tree(value)
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) and value.func.id == "super":
                owner = tree.enclosing_class(value)
                return next(iter(self.bases(owner)), None) if owner else None
            return self.built_class(value)
        if isinstance(value, ast.Name):
            function = tree.function(value)
            owner = self.class_of.get(function) if function is not None else None
            first = function.args.args[:1] if function is not None else []
            if owner is not None and first and value.id == first[0].arg:
                return owner
            found = self._scopes.reaching(value.id, value)
            values = [part_of(d) if d.path else d.value for d in found]
            values += [d.node.annotation for d in found if isinstance(d.node, ast.arg)]
            named = self._class_called(value.id) if found and found[0].kind == "parameter" else None
            if named is not None:
                return named
        elif isinstance(value, ast.Attribute):
            values = [d.value for tree in self._trees for d in tree.attributes.get(value.attr, ())]
        else:
            return None
        owners = [self._class_meant(v) for v in values if v is not None]
        return next((o for o in owners if o is not None), None)

    def _class_meant(self, value: ast.expr) -> ast.ClassDef | None:
        """The class that an expression builds or enters, or that an annotation names."""
        found = self.definition(value.func if isinstance(value, ast.Call) else value)
        entered = isinstance(found, FUNCTIONS) and decorators.is_context_manager(found)
        if isinstance(value, ast.Call) and isinstance(found, FUNCTIONS) and entered:
            given = [y.value for y in self._names.tree(found).yields.get(found, ())]
            for name in [v for v in given if isinstance(v, ast.Name)]:
                given += [part_of(d) for d in self._scopes.reaching(name.id, name)]
            return next((o for v in given if v and (o := self.built_class(v)) is not None), None)
        return found if isinstance(found, ast.ClassDef) else None

    def _class_called(self, name: str) -> ast.ClassDef | None:
        """The one class that a parameter is called after: `engine` for `Engine`, `my_trainer` for `MyTrainer`."""
        plain = name.replace("_", "").lower()
        found = [c for tree in self._trees for c in tree.classes if c.name.lower() == plain]
        return found[0] if len(found) == 1 else None

    def _sites_of(self, call: ast.Call) -> Iterable[tuple[ast.AST, CallSite]]:
        targets = self.targets(call)
        name = self._names.qualified(call.func) or ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
        if not targets and last != "Process" and name not in SPAWNS:
            return
        keywords = {k.arg or "**": k.value for k in call.keywords}
        for target in targets:
            is_method = target in self.class_of and not decorators.is_static(target)
            base = self.definition(call.func.value) if isinstance(call.func, ast.Attribute) else None
            by_class = isinstance(base, ast.ClassDef) and not decorators.takes_class(target)
            yield target, CallSite(call, tuple(call.args), keywords, int(is_method and not by_class))
        if name in SPAWNS:
            function, given = self.argument(call, "fn"), self.argument(call, "args")
            yield from self._started(call, function, given, ranked=True)
        elif last == "Process" and "target" in keywords:
            yield from self._started(call, keywords["target"], keywords.get("args"), ranked=False)

    def _started(
        self, call: ast.Call, target: ast.expr | None, args: ast.expr | None, *, ranked: bool
    ) -> Iterable[tuple[ast.AST, CallSite]]:
        function = self.definition(target) if target is not None else None
        if isinstance(function, FUNCTIONS):
            given = tuple(args.elts) if isinstance(args, DISPLAYS) else ()
            keywords = {} if given or args is None else {"**": args}
            yield function, CallSite(call, given, keywords, int(ranked), spawned=True)

    def _mentions(self) -> Iterable[tuple[ast.AST, ast.AST]]:
        names = {f.name for f in self.functions}
        for f in self.functions:
            yield from ((f, d) for d in f.decorator_list if decorators.may_call(self._names, d))
        for tree in self._trees:
            for name in names:
                for node in (*tree.loads.get(name, ()), *tree.attribute_loads.get(name, ())):
                    above = tree.parent[node]
                    if isinstance(above, ast.Call) and above.func is node:
                        continue
                    found = self.definition(node)
                    if found is None and isinstance(node, ast.Attribute):
                        owner = self.owner(node.value)
                        found = self.method(owner, name) if owner is not None else None
                    if found is not None:
                        yield found, node
