"""The part of a script that edits touch, on the lines on which it stands: to parse all of a long one takes its time."""

from __future__ import annotations

import ast
import io
from collections.abc import Collection
from dataclasses import replace

from grader.checks.source.script import Script
from grader.model.fix import Edit
from grader.model.submission import Submission


def touched_alone(script: Script, edits: Collection[Edit]) -> Submission:
    """The submission with empty lines in place of the top-level statements that no edit lies in."""
    roots = {tree.path: tree.root for tree in script.trees}
    files = tuple(
        replace(file, text=_alone(file.text, roots[file.path], own)) if own and file.path in roots else file
        for file in script.submission.files
        for own in [[edit for edit in edits if edit.path == file.path]]
    )
    return replace(script.submission, files=files)


def _alone(text: str, root: ast.Module, edits: list[Edit]) -> str:
    # What begins or ends on a line with another statement stays.
    lines = list(io.StringIO(text, newline=""))
    kept = {line for edit in edits for line in range(edit.line, edit.end_line + 1)}
    spans = [(_first_line(one), one.end_lineno or one.lineno) for one in root.body]
    for first, last in spans:
        if not kept.isdisjoint(range(first, last + 1)):
            kept.update(range(first, last + 1))
    for first, last in spans:
        if kept.isdisjoint(range(first, last + 1)):
            # Each keeps its own end: another one below a lone `\r` would be the rest of that.
            lines[first - 1 : last] = [line[len(line.rstrip("\r\n")) :] for line in lines[first - 1 : last]]
    return "".join(lines)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(one.lineno for one in decorators)) if decorators else statement.lineno
