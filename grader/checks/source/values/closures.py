"""Everything that had a part in a value, collected over all files.

Where `sources` follows one value to what it is, this takes along whatever was put in on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from grader.checks.source.calls.results import Results
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, UNKNOWN, Definition, children, items_of
from grader.checks.source.values.collected_values import collected_into
from grader.checks.source.values.object_fields import ObjectFields
from grader.checks.source.values.reaching_assignments import Scopes

_MAX_NODES = 4000
_MAX_DEPTH = 3


class Closures:
    """Parts of values.

    `origins` finds what a value is, `given` what a parameter receives, `run_by` the functions that a call runs.
    """

    def __init__(
        self,
        names: Names,
        scopes: Scopes,
        results: Results,
        fields: ObjectFields,
        origins: Callable[[ast.AST], Sequence[ast.AST]],
        given: Callable[[Definition], Iterable[ast.AST]],
        run_by: Callable[[ast.Call], Iterable[ast.AST]],
    ) -> None:
        self._names, self._scopes, self._results, self._fields = names, scopes, results, fields
        self._origins, self._given, self._run_by = origins, given, run_by
        self._known: dict[ast.AST, Set[ast.AST]] = {}
        self._grown: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        self._sources: dict[ast.AST, tuple[list[ast.AST], list[ast.AST]]] = {}

    def of(self, node: ast.AST) -> Set[ast.AST]:
        """All of them, in the order in which they are found, so that the first one is the same in every process."""
        if node not in self._known:
            self._known[node] = dict.fromkeys(self._collect(node)).keys()
        return self._known[node]

    def parts(self, node: ast.AST, but: Callable[[ast.AST], bool] | None = None) -> Iterable[ast.AST]:
        """The same one by one, for whoever stops at the first that is wrong.

        `but` tells nodes that are left out, with what only they are made of.
        """
        known = self._known.get(node) if but is None else None
        return known or self._collect(node, but)

    def _collect(self, node: ast.AST, but: Callable[[ast.AST], bool] | None = None) -> Iterator[ast.AST]:
        seen: set[ast.AST] = set()
        work = [node]
        while work and len(seen) < _MAX_NODES:
            current = work.pop()
            if current in seen or current is UNKNOWN or (but is not None and but(current)):
                continue
            seen.add(current)
            yield current
            if current not in self._sources:
                self._sources[current] = self._sources_of(current)
            sources, statements = self._sources[current]
            work += sources
            if statements:
                seen.update(statements)
                yield from statements

    def _added_to(self, node: ast.Name) -> list[ast.expr]:
        tree = self._names.tree(node)
        key = (tree.scope(node), node.id)
        if key not in self._grown:
            self._grown[key] = [part for given in collected_into(tree, node) for part in given]
        return self._grown[key]

    def _sources_of(self, node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
        """What a node is made of in one step: nodes to go on with, and statements that only have a part in it."""
        if isinstance(node, FUNCTIONS):
            return [], []  # one that is handed on: what it gives back counts where it is called
        # A loop's variable is made of what the loop goes through, not of all that the loop does.
        sources: list[ast.AST] = (
            [node.iter] if isinstance(node, ast.For | ast.AsyncFor) else self._pieces(node)
        )
        statements: list[ast.AST] = []
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            name = node.id
            sources += self._added_to(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
        if name is not None:
            for definition in self._scopes.reaching(name, node):
                if definition.value is not None:
                    unpacked = definition.path if definition.kind in ("assign", "with") else ()
                    sources += self._unpacked(definition.value, unpacked, _MAX_DEPTH) or [definition.value]
                    if definition.kind == "augment":
                        statements.append(definition.node)
                elif definition.kind == "parameter":
                    sources.extend(self._given(definition))
        elif isinstance(node, ast.Call):
            for target in self._run_by(node):
                sources += self._results.of(node, target)
        # Many calls may give a parameter the same; of these the last one is the first to be gone on with.
        return list(dict.fromkeys(reversed(sources)))[::-1], statements

    def _pieces(self, node: ast.AST) -> list[ast.AST]:
        """What stands right below a node; of a part of something that the script made itself, only that part."""
        found: list[Sequence[ast.AST]] = []
        if isinstance(node, ast.Attribute):
            found = [self._fields.fixed(o, node.attr) for o in self._origins(node.value)]
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            # A list, or what something was added to, may hold anything by now.
            filled = isinstance(node.value, ast.Name) and bool(self._added_to(node.value))
            wholes = () if filled else self._origins(node.value)
            found = [() if isinstance(o, ast.List) else list(items_of(o, node.slice.value)) for o in wholes]
        return [part for parts in found for part in parts] if all(found) and found else children(node)

    def _unpacked(self, value: ast.AST, path: tuple[int, ...], depth: int) -> list[ast.AST]:
        """What comes into one of several names; nothing where the text does not show it."""
        if not path or not depth:
            return [] if path else [value]
        if isinstance(value, DISPLAYS):
            written = 0 <= path[0] < len(value.elts) and not any(
                isinstance(e, ast.Starred) for e in value.elts
            )
            return self._unpacked(value.elts[path[0]], path[1:], depth) if written else []
        made: list[ast.expr] = []
        if isinstance(value, ast.Call):
            made = [result for target in self._run_by(value) for result in self._results.of(value, target)]
        parts = [self._unpacked(result, path, depth - 1) for result in made]
        return [part for found in parts for part in found] if all(parts) else []
