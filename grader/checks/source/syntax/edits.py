"""Edits of a script, built from its syntax tree: what a rule's fix is made of.

A rule says what it wants in terms of nodes; indentation, imports that are lacking and other statements on the same line
are seen to here. What can't be written for certain makes the whole fix None, and the hint stays in words.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.needed_lines import import_for
from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.collectives.joined_groups import may_lack_group
from grader.checks.source.libraries.spelling import header, is_bound, spelled
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import lines_of_texts, node_lines, node_text
from grader.checks.source.syntax.nodes import UNKNOWN, block_of, start
from grader.checks.source.syntax.touched_statements import touched_alone
from grader.checks.source.syntax.tree import Tree
from grader.model.fix import Edit, Fix, mended
from grader.model.syntax_tree import parse_text

_SYSTEM = ("import os", "import sys")


class Edits:
    """Edits of one fix, collected one by one."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._edits: list[Edit] = []
        self._imports: dict[tuple[str, str], Tree] = {}
        self._certain = True

    def give_up(self) -> None:
        """It isn't certain what to write after all."""
        self._certain = False

    def fix(self, summary: str) -> Fix | None:
        """All that was collected, with the imports that it needs; None where any of it is uncertain."""
        for (_, line), tree in self._imports.items():
            self._import(tree, line)
        edits = tuple(dict.fromkeys(self._edits))
        if not self._certain or not edits:
            return None
        fix = Fix(summary, edits)
        try:
            changed = mended(touched_alone(self._script, edits), [fix])
            for path in {edit.path for edit in edits}:
                parse_text(changed.text(path) or "")
        except (SyntaxError, ValueError):
            return None
        return fix

    def name(self, dotted: str, at: ast.AST) -> str:
        """How a library's name is written at a node: as the script has it there, else as an added import makes it."""
        tree = self._script.names.tree(at)
        if may_lack_group(self._script, dotted, at):
            self.give_up()
        known = spelled(self._script, dotted, at)
        if known:
            return known
        found = import_for(dotted)
        if found is None or is_bound(tree, found[0].partition(".")[0]):
            self.give_up()
            return dotted
        self._imports[tree.path, found[1]] = tree
        return found[0]

    def text(self, node: ast.AST) -> str:
        """A node as it is written; in one line, where it is written over several."""
        return node_text(self._script, node)

    def lines(self, node: ast.expr, indent: str) -> list[str]:
        """A node as it is written, line by line, moved to an indentation."""
        return node_lines(self._script, node, indent)

    def replace(self, node: ast.expr, text: str) -> None:
        """Write a text in an expression's place."""
        self._outside_texts(node)
        self._edits.append(_over(self._path(node), node, text))

    def append(self, node: ast.expr, text: str) -> None:
        """Write a text right after an expression."""
        self._outside_texts(node)
        if text.startswith(".") and not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            self.give_up()
        line, column = node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1
        self._edits.append(Edit(self._path(node), line, column, line, column, text))

    def cut(self, inner: ast.expr, outer: ast.expr) -> None:
        """Leave nothing of an expression that follows a part of it: `wrap(x)` of `wrap(x).to(device)`."""
        begin = (inner.end_lineno or inner.lineno, (inner.end_col_offset or 0) + 1)
        end = (outer.end_lineno or outer.lineno, (outer.end_col_offset or 0) + 1)
        self._edits.append(Edit(self._path(outer), *begin, *end, ""))

    def give(self, call: ast.Call, name: str, value: str) -> None:
        """Give a call an argument by its keyword, in the place of the value that it is given now."""
        given = self._script.argument(call, name)
        if given is UNKNOWN:
            self.give_up()
            return
        if given is not None:
            written = given in call.args or any(k.value is given for k in call.keywords)
            self.replace(given, value) if written or self._of_own_options(given) else self.give_up()
            return
        parts = arguments_of(call)
        comprehension = len(parts) == 1 and isinstance(parts[0], ast.GeneratorExp)
        if any(k.arg is None for k in call.keywords) or comprehension:
            self.give_up()
        elif parts:
            last = max(parts, key=lambda part: (part.end_lineno or 0, part.end_col_offset or 0))
            self.append(last, f", {name}={value}")
        else:
            # Right before the bracket that ends the call.
            self._insert(call.end_lineno or call.lineno, call.end_col_offset or 0, call, f"{name}={value}")

    def exchange(self, call: ast.Call, old: str, name: str, value: str) -> None:
        """Give a call another argument in the place of one that may be there; by position, that one becomes False."""
        keyword = next((k for k in call.keywords if k.arg == old), None)
        if keyword is not None:
            self._edits.append(_over(self._path(call), keyword, f"{name}={value}"))
            return
        if self._script.argument(call, old) is not None:
            self.give(call, old, "False")
        self.give(call, name, value)

    def take_away(self, call: ast.Call, name: str, otherwise: str) -> None:
        """Remove a keyword with its comma; an argument that is given in another way becomes `otherwise`."""
        keyword = next((k for k in call.keywords if k.arg == name), None)
        if keyword is None:
            self.give(call, name, otherwise)
            return
        parts: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=start)
        index, path = parts.index(keyword), self._path(call)
        if index + 1 < len(parts):
            following = parts[index + 1]
            begin, end = (keyword.lineno, keyword.col_offset), (following.lineno, following.col_offset)
        elif index:
            before = parts[index - 1]
            begin = (before.end_lineno or 0, before.end_col_offset or 0)
            end = (keyword.end_lineno or 0, keyword.end_col_offset or 0)
        else:
            begin = (keyword.lineno, keyword.col_offset)
            end = (keyword.end_lineno or 0, keyword.end_col_offset or 0)
        self._edits.append(Edit(path, begin[0], begin[1] + 1, end[0], end[1] + 1, ""))

    def before(self, statement: ast.stmt, *lines: str) -> None:
        """Put lines before a statement, with its indentation."""
        indent = self._indent(statement)
        text = "".join(f"{line}\n{indent}" for line in lines)
        self._insert(statement.lineno, statement.col_offset + 1, statement, text)

    def after(self, statement: ast.stmt, *lines: str) -> None:
        """Put lines after a statement, with its indentation."""
        indent = self._indent(statement)
        last = statement.end_lineno or statement.lineno
        column = len(self._line(statement, last).encode()) + 1
        self._insert(last, column, statement, "".join(f"\n{indent}{line}" for line in lines))

    def remove(self, statement: ast.stmt) -> None:
        """Remove a statement with its lines; a block that it leaves empty gets a `pass`."""
        self._indent(statement)
        path, last = self._path(statement), statement.end_lineno or statement.lineno
        if len(self._siblings(statement)) == 1:
            end = (statement.end_col_offset or 0) + 1
            self._edits.append(Edit(path, statement.lineno, statement.col_offset + 1, last, end, "pass"))
        elif last < len(self._script.submission.lines(path)):
            self._edits.append(Edit(path, statement.lineno, 1, last + 1, 1, ""))
        else:
            above = len(self._script.line(path, statement.lineno - 1).encode()) + 1
            end = len(self._line(statement, last).encode()) + 1
            self._edits.append(Edit(path, statement.lineno - 1, above, last, end, ""))

    def rewrite(self, statement: ast.stmt, *lines: str) -> None:
        """Write lines in a statement's place, with its indentation."""
        indent = self._indent(statement)
        last, end = statement.end_lineno or statement.lineno, (statement.end_col_offset or 0) + 1
        text = f"\n{indent}".join(lines)
        self._edits.append(
            Edit(self._path(statement), statement.lineno, statement.col_offset + 1, last, end, text)
        )

    def make_tuple(self, node: ast.expr) -> None:
        """A tuple of one expression, which may stand in parentheses of its own."""
        line = self._line(node, node.lineno).encode()
        in_parentheses = line[: node.col_offset].endswith(b"(") and line[
            node.end_col_offset or 0 :
        ].startswith(b")")
        if node.end_lineno != node.lineno:
            self.give_up()
        self.append(node, ",") if in_parentheses else self.replace(node, f"({ast.unparse(node)},)")

    def wrap(self, statements: Sequence[ast.stmt], opening: str, *before: str) -> None:
        """Put statements into a block of their own, `if rank == 0:`; neighbours share one.

        Args:
            statements: of any blocks. opening: begins the block. before: lines that stand before it.
        """
        chosen = sorted(statements, key=start)
        previous: ast.stmt | None = None
        for statement in chosen:
            indent = self._indent(statement)
            step = "\t" if indent.startswith("\t") else "    "
            siblings = self._siblings(statement)
            index = next((n for n, s in enumerate(siblings) if s is statement), 0)
            joins = previous is not None and index > 0 and siblings[index - 1] is previous
            first = statement.lineno
            if joins and previous is not None:
                first = (previous.end_lineno or previous.lineno) + 1
            else:
                text = "".join(f"{line}\n{indent}" for line in (*before, opening)) + step
                self._insert(statement.lineno, statement.col_offset + 1, statement, text)
                first += 1
            inside = lines_of_texts(statement)
            for number in range(first, (statement.end_lineno or statement.lineno) + 1):
                if number not in inside and self._line(statement, number).strip():
                    self._insert(number, 1, statement, step)
            previous = statement

    def _outside_texts(self, node: ast.AST) -> None:
        """Python 3.11 does not say where an expression within an f-string stands."""
        tree, above = self._script.names.tree(node), node
        while not isinstance(above, ast.stmt):
            above = tree.parent[above]
            if isinstance(above, ast.JoinedStr):
                self.give_up()

    def _of_own_options(self, given: ast.expr) -> bool:
        """A value of options that are written out and given to one call alone."""
        tree = self._script.names.tree(given)
        display = tree.parent.get(given)
        if isinstance(display, ast.keyword):
            display = tree.parent.get(display)
        bound = tree.parent.get(display) if isinstance(display, ast.Dict | ast.Call) else None
        if not isinstance(bound, ast.Assign) or len(bound.targets) != 1:
            return False
        name = bound.targets[0]
        return isinstance(name, ast.Name) and len(tree.loads.get(name.id, ())) == 1

    def _insert(self, line: int, column: int, node: ast.AST, text: str) -> None:
        self._edits.append(Edit(self._path(node), line, column, line, column, text))

    def _path(self, node: ast.AST) -> str:
        return self._script.names.tree(node).path

    def _line(self, node: ast.AST, number: int) -> str:
        return self._script.line(self._path(node), number)

    def _siblings(self, statement: ast.stmt) -> list[ast.stmt]:
        return block_of(self._script.names.tree(statement).parent, statement) or [statement]

    def _indent(self, statement: ast.stmt) -> str:
        """What stands before a statement that has its lines for itself; one that shares them is not for editing."""
        begin = self._line(statement, statement.lineno).encode()[: statement.col_offset].decode()
        last = self._line(statement, statement.end_lineno or statement.lineno).encode()
        rest = last[statement.end_col_offset or 0 :].decode().strip()
        if begin.strip() or (rest and not rest.startswith("#")) or last.endswith(b"\\"):
            self.give_up()
        return begin

    def _import(self, tree: Tree, line: str) -> None:
        """Add an import to those at the top of a file."""
        top = header(tree.root.body)
        imports = [s for s in top if isinstance(s, ast.Import | ast.ImportFrom)]
        own = [s for s in imports if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
        if own and line in _SYSTEM:
            self._joined(own[0], line, first=True)
        elif imports:
            self._joined(imports[-1], line, first=False)
        elif len(top) < len(tree.root.body):
            self._joined(tree.root.body[len(top)], line, first=True)
        else:
            self.give_up()

    def _joined(self, statement: ast.stmt, line: str, *, first: bool) -> None:
        """Lines that several imports add at one place are one edit."""
        known = len(self._edits)
        self.before(statement, line) if first else self.after(statement, line)
        added = self._edits.pop() if len(self._edits) > known else None
        same = next((n for n, e in enumerate(self._edits) if added and e.begin == added.begin == e.end), None)
        if added is not None and same is not None and self._edits[same].path == added.path:
            old = self._edits[same]
            text = added.text + old.text if first else old.text + added.text
            self._edits[same] = Edit(old.path, *old.begin, *old.end, text)
        elif added is not None:
            self._edits.append(added)


def _over(path: str, node: ast.expr | ast.keyword, text: str) -> Edit:
    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Edit(path, node.lineno, node.col_offset + 1, last, end + 1, text)
