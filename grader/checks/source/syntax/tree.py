"""One file of a submission as a syntax tree, walked once, with the indices that every question needs.

The walk is the only full pass over a file: calls, loops, definitions by scope, stores to attributes and imports are
noted on the way, so that a rule pays for what it asks and not for the size of the script. It never executes or
imports anything, never recurses (a sum of ten thousand terms is a legal script) and knows nothing about torch.
"""

from __future__ import annotations

import ast
from typing import Any

from grader.checks.source.syntax.call_index import CallIndex
from grader.checks.source.syntax.nodes import (
    DISPLAYS,
    FIELDS,
    FUNCTIONS,
    SCOPES,
    Definition,
    Function,
    ImpliedCall,
    Loop,
    Place,
    PropertyRead,
    Scope,
    ancestors,
    end,
    fields_of,
    start,
)

# Sets of kinds, because they are asked for every node.
_DECLARING = frozenset({ast.Global, ast.Nonlocal})
_SCOPED = frozenset({*SCOPES, *_DECLARING, ast.arguments})


class Tree:
    """A parsed file.

    Attributes:
        path: relative path; module: dotted module name; root: its syntax tree; text: its source.
        parent: the node above each node.
        calls: all calls in the order of the text; loops, functions, classes, withs, ifs, tries, exits
            (`break` and `continue`), slices (`x[a:b]`), deletions, importing (import statements): likewise collected.
        calls_within, calls_given, called, called_like: calls by place, keyword and name, see `CallIndex`.
        definitions: scope → name → definitions in the order of the text.
        attributes: attribute name → stores to it on any object (`self.x = …`, `args.x = …`).
        returns, yields: per function. imports: full names of all. stars: star-imported modules, last one first.
        loads, attribute_loads: name → places where it is read, as a plain name and as an attribute.
    """

    def __init__(self, path: str, text: str, root: ast.Module, *, alone: bool = False) -> None:
        self.path, self.text, self.root = path, text, root
        # Nothing imports a file that is alone: `import numpy` in `numpy.py` means the library.
        module = "__main__" if alone else path.removesuffix(".py").replace("/", ".")
        self.is_package = module == "__init__" or module.endswith(".__init__")
        self.module = module.removesuffix("__init__").rstrip(".") if self.is_package else module
        self.parent: dict[ast.AST, ast.AST] = {}
        self._scope_of: dict[ast.AST, Scope] = {}
        self.slices: list[ast.Subscript] = []
        self.deletions: list[ast.Delete] = []
        self._calls: list[ast.Call] = []
        self.loops: list[Loop] = []
        self.functions: list[Function] = []
        self.classes: list[ast.ClassDef] = []
        self.withs: list[ast.With | ast.AsyncWith] = []
        self.ifs: list[ast.If] = []
        self.tries: list[ast.Try] = []
        self.importing: list[ast.Import | ast.ImportFrom] = []
        self.exits: list[ast.Break | ast.Continue] = []
        self.constants: set[str] = set()
        self.texts: list[ast.Constant] = []
        self.definitions: dict[ast.AST, dict[str, list[Definition]]] = {}
        self.attributes: dict[str, list[Definition]] = {}
        self.attribute_loads: dict[str, list[ast.Attribute]] = {}
        self.returns: dict[ast.AST, list[ast.Return]] = {}
        self.yields: dict[ast.AST, list[ast.Yield | ast.YieldFrom]] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        self.stars: dict[str, ast.ImportFrom] = {}
        self.imports: list[str] = []
        self._walk()
        index = CallIndex(self._calls)
        self.calls = index.calls
        self.calls_within, self.calls_given = index.within, index.given
        self.called, self.called_like = index.called, index.called_like

    def scope(self, node: ast.AST) -> Scope:
        """The scope that a node's names are looked up in (of a function: the one it is defined in)."""
        return self._scope_of.get(node, self.root)

    def function(self, node: ast.AST) -> Function | None:
        """The function that a node runs in, None at module level; class bodies and lambdas are looked through."""
        scope = self.scope(node)
        while not isinstance(scope, (ast.Module, *FUNCTIONS)):
            scope = self.scope(scope)
        return None if isinstance(scope, ast.Module) else scope

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method a node runs in."""
        return next((n for n in ancestors(self.parent, node) if isinstance(n, ast.ClassDef)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            above = self.parent.get(node)
            if above is None:
                break
            node = above
        return node if isinstance(node, ast.stmt) else ast.Pass(lineno=1, col_offset=0)

    def inside(self, node: ast.AST, outer: ast.AST) -> bool:
        """Whether a node is `outer` or written inside it."""
        above: ast.AST | None = node
        while above is not None:
            if above is outer:
                return True
            above = self.parent.get(above)
        return False

    def _walk(self) -> None:
        parent, scope_of, loads = self.parent, self._scope_of, self.loads
        name_kind, load_kind = ast.Name, ast.Load
        scope_of[self.root] = self.root
        stack: list[Any] = [self.root]
        outer_names: list[tuple[Scope, list[str]]] = []
        while stack:
            node = stack.pop()
            kind = node.__class__
            if kind is name_kind:
                # A third of all nodes, with nothing below them.
                if node.ctx.__class__ is load_kind:
                    loads.setdefault(node.id, []).append(node)
                continue
            scope = scope_of[node]
            note = _NOTES.get(kind)
            if note is not None:
                note(self, node, scope)
            inner, outside = scope, ""
            if kind in _SCOPED:
                # Decorators and defaults run outside the function that they belong to.
                if kind is ast.arguments:
                    outside, scope = "defaults", scope_of[scope]
                elif kind in _DECLARING:
                    outer_names.append((scope, node.names))
                else:
                    inner, outside = node, "decorator_list"
            fields = FIELDS.get(kind)
            for field in fields_of(kind) if fields is None else fields:
                child = getattr(node, field)
                if not child:
                    continue
                around = scope if outside and field.endswith(outside) else inner
                if child.__class__ is list:
                    for item in child:
                        if item is not None:
                            parent[item], scope_of[item] = node, around
                            stack.append(item)
                else:
                    parent[child], scope_of[child] = node, around
                    stack.append(child)
        for names in self.definitions.values():
            for found in names.values():
                if len(found) > 1:
                    found.sort(key=lambda d: d.since)
        outer = self.definitions.setdefault(self.root, {})
        for scope, declared in outer_names:
            for name in declared:
                outer.setdefault(name, []).extend(self.definitions.get(scope, {}).pop(name, ()))

    def _define(self, scope: ast.AST, definition: Definition) -> None:
        self.definitions.setdefault(scope, {}).setdefault(definition.name, []).append(definition)

    def _bind(
        self, target: ast.expr, node: ast.AST, value: ast.expr | None, kind: str, scope: ast.AST, since: Place
    ) -> None:
        stack: list[tuple[ast.expr, tuple[int, ...]]] = [(target, ())]
        while stack:
            part, path = stack.pop()
            if isinstance(part, ast.Name):
                self._define(scope, Definition(part.id, node, value, path, kind, since))
            elif isinstance(part, ast.Attribute):
                base = part.value.id if isinstance(part.value, ast.Name) else ""
                definition = Definition(f"{base}.{part.attr}", node, value, path, kind, since)
                self._define(scope, definition)
                self.attributes.setdefault(part.attr, []).append(definition)
            elif isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                key = part.slice.value if isinstance(part.slice, ast.Constant) else None
                self._define(scope, Definition(f"{part.value.id}[{key!r}]", node, value, path, kind, since))
            elif isinstance(part, DISPLAYS):
                stack.extend(
                    (p, (*path, -1 if isinstance(p, ast.Starred) else i)) for i, p in enumerate(part.elts)
                )
            elif isinstance(part, ast.Starred):
                stack.append((part.value, path))

    def _attribute(self, node: ast.Attribute, scope: ast.AST) -> None:
        if node.ctx.__class__ is ast.Load:
            self.attribute_loads.setdefault(node.attr, []).append(node)

    def _subscript(self, node: ast.Subscript, scope: ast.AST) -> None:
        if node.slice.__class__ is ast.Slice:
            self.slices.append(node)

    def _constant(self, node: Any, scope: ast.AST) -> None:
        if node.value.__class__ is str:
            self.texts.append(node)
            if len(node.value) < 200:
                self.constants.add(node.value)

    def _assign(self, node: ast.Assign, scope: ast.AST) -> None:
        for target in node.targets:
            self._bind(target, node, node.value, "assign", scope, end(node))

    def _targeted(self, node: ast.AnnAssign | ast.AugAssign | ast.NamedExpr, scope: ast.AST) -> None:
        if node.value is not None:
            kind = "augment" if isinstance(node, ast.AugAssign) else "assign"
            self._bind(node.target, node, node.value, kind, scope, end(node))

    def _call(self, node: ast.Call, scope: ast.AST) -> None:
        self._calls.append(node)
        if isinstance(f := node.func, ast.Attribute) and f.attr == "update" and isinstance(f.value, ast.Name):
            for k in node.keywords:  # as `settings["device"] = …`
                key = f"{f.value.id}[{k.arg!r}]"
                self._define(scope, Definition(key, self.parent[node], k.value, (), "assign", end(node)))

    def _for(self, node: ast.For | ast.AsyncFor, scope: ast.AST) -> None:
        self.loops.append(node)
        self._bind(node.target, node, node.iter, "for", scope, end(node.iter))

    def _comprehension(self, node: ast.comprehension, scope: ast.AST) -> None:
        # The element stands before its own `for`: the name holds from the start of the whole comprehension.
        self._bind(node.target, node, node.iter, "for", scope, start(self.parent[node]))

    def _with(self, node: ast.With | ast.AsyncWith, scope: ast.AST) -> None:
        self.withs.append(node)
        for item in node.items:
            if (held := item.optional_vars) is not None:
                self._bind(held, node, item.context_expr, "with", scope, end(held))

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar, scope: ast.AST) -> None:
        if node.name:
            self._define(scope, Definition(node.name, node, None, (), "other", start(node)))

    def _function(self, node: Function, scope: ast.AST) -> None:
        self.functions.append(node)
        self._define(scope, Definition(node.name, node, None, (), "function", start(node)))

    def _class(self, node: ast.ClassDef, scope: ast.AST) -> None:
        self.classes.append(node)
        self._define(scope, Definition(node.name, node, None, (), "class", start(node)))

    def _parameter(self, node: ast.arg, scope: ast.AST) -> None:
        self._define(scope, Definition(node.arg, node, None, (), "parameter", (0, 0)))

    def _import(self, node: ast.Import, scope: ast.AST) -> None:
        self.importing.append(node)
        for alias in node.names:
            self.imports.append(alias.name)
            name, dotted = (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
            self._define(scope, Definition(name, node, None, (), "import", end(node), dotted))

    def _import_from(self, node: ast.ImportFrom, scope: ast.AST) -> None:
        self.importing.append(node)
        base = node.module or ""
        if node.level:
            package = self.module.split(".") if self.module else []
            kept = package[: len(package) - node.level + int(self.is_package)]
            base = ".".join([*kept, base] if base else kept)
        for alias in node.names:
            if alias.name == "*":
                self.stars.setdefault(base, node)
                self.imports.append(base)
                continue
            dotted = f"{base}.{alias.name}" if base else alias.name
            self.imports.append(dotted)
            self._define(
                scope, Definition(alias.asname or alias.name, node, None, (), "import", end(node), dotted)
            )


def _listing(name: str) -> Any:
    return lambda tree, node, _scope: getattr(tree, name).append(node)


def _by_scope(name: str) -> Any:
    return lambda tree, node, scope: getattr(tree, name).setdefault(scope, []).append(node)


_NOTES: dict[type[ast.AST], Any] = {
    ast.Call: Tree._call, PropertyRead: _listing("_calls"), ImpliedCall: _listing("_calls"), ast.If: _listing("ifs"),
    ast.While: _listing("loops"), ast.Try: _listing("tries"), ast.Delete: _listing("deletions"),
    ast.Break: _listing("exits"), ast.Continue: _listing("exits"), ast.Attribute: Tree._attribute,
    ast.Subscript: Tree._subscript, ast.Constant: Tree._constant, ast.Assign: Tree._assign,
    ast.AnnAssign: Tree._targeted, ast.AugAssign: Tree._targeted, ast.NamedExpr: Tree._targeted, ast.For: Tree._for,
    ast.AsyncFor: Tree._for, ast.comprehension: Tree._comprehension, ast.With: Tree._with, ast.AsyncWith: Tree._with,
    ast.ExceptHandler: Tree._named, ast.MatchAs: Tree._named, ast.MatchStar: Tree._named,
    ast.FunctionDef: Tree._function, ast.AsyncFunctionDef: Tree._function, ast.ClassDef: Tree._class,
    ast.arg: Tree._parameter, ast.Return: _by_scope("returns"), ast.Yield: _by_scope("yields"),
    ast.YieldFrom: _by_scope("yields"), ast.Import: Tree._import, ast.ImportFrom: Tree._import_from,
}  # fmt: skip
