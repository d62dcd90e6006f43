"""Whether a script's course may hang on hashes of strings, which every Python process computes in its own way."""

from __future__ import annotations

import ast

from grader.model.submission import Submission
from grader.model.syntax_tree import parse_text

_HASHING = frozenset({"set", "frozenset", "hash"})


def may_follow_hash_order(submission: Submission) -> bool:
    """Whether its files make sets that are more than looked into (`x in {"a", "b"}`), or ask for hashes.

    True where a file is no Python: that is for its run to show, however it is started.
    """
    return any(_hashes(file.text) for file in submission.files if file.path.endswith(".py"))


def launcher_for(launcher: str, submission: Submission) -> str:
    """The launcher that a submission gets where it would be started by this one."""
    # Both are clocked alike; an interpreter for every rank costs imports, so only scripts that may need it get it.
    return "interpreter" if launcher == "fork" and may_follow_hash_order(submission) else launcher


def _hashes(text: str) -> bool:
    try:
        nodes = list(ast.walk(parse_text(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    looked_into = {
        id(right)
        for node in nodes
        if isinstance(node, ast.Compare)
        for operator, right in zip(node.ops, node.comparators, strict=True)
        if isinstance(operator, ast.In | ast.NotIn)
    }
    return any(
        (isinstance(node, ast.Name) and node.id in _HASHING)
        or (isinstance(node, ast.Set | ast.SetComp) and id(node) not in looked_into)
        for node in nodes
    )
