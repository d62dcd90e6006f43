"""Whether a path is the same on every rank, or tells one rank's file from another's; whether others wrote the file.

Follows the value to its parts; where the path is not known nothing is claimed.
"""

from __future__ import annotations

import ast
import re

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import ancestors, walk

_OWN_BY_NATURE = (
    "io.",
    "tempfile.",
    "uuid.",
    "os.getpid",
    "os.devnull",
    "time.",
    "datetime.",
    "secrets.",
    "random.",
)

_BEGUN_ELSEWHERE = re.compile(
    r"pre_?train|imagenet_weights|backbone_(path|weights)|init_(from|weights)", re.IGNORECASE
)


def tells_rank(script: Script, path: ast.expr | None) -> bool:
    """Whether a path has the rank in it, so that each rank has a file of its own."""
    if path is None or path is UNKNOWN:
        return False
    written = (n for origin in (path, *script.values.origins(path)) for n in walk(origin))
    read = (n for n in script.values.closure(path) if isinstance(n, ast.Name | ast.Attribute))
    return any(script.ranks.shows_rank(n) for n in (*written, *read))


def of_each_process(script: Script, path: ast.expr) -> bool:
    """Whether something in a path is another one in every process: the rank, a temporary folder, the time."""
    names = (
        script.names.qualified(n) or ""
        for n in script.values.closure(path)
        if isinstance(n, ast.Name | ast.Attribute)
    )
    return tells_rank(script, path) or any(name.startswith(_OWN_BY_NATURE) for name in names)


def path_text(script: Script, path: ast.expr | None) -> str:
    """What names a path: its text, or the expression that makes it; "" where that is not plain."""
    if path is None or path is UNKNOWN:
        return ""
    text = script.values.constant(path)
    if isinstance(text, str):
        return repr(text)
    origins = [o for o in script.values.origins(path) if isinstance(o, ast.expr)]
    return ast.unparse(origins[0]) if len(origins) == 1 else ""


def same_for_all(script: Script, path: ast.expr | None) -> bool:
    """Whether nothing in a path tells one rank's file from another's; False where the path is not known."""
    if path is None or path is UNKNOWN:
        return False
    if of_each_process(script, path):
        return False
    # A file object opened elsewhere is judged where it is opened.
    opened = [o for o in script.values.origins(path) if isinstance(o, ast.Call)]
    return not any(script.names.qualified(o.func) in ("open", "io.BytesIO") for o in opened)


def of_others(script: Script, load: ast.Call) -> bool:
    """Whether `torch.load` reads weights that somebody else trained: a file to start from, called so.

    Where their tensors lay, and what else was kept of that run, is not this script's business.
    """
    path = script.given(load, "f")
    if path is None:
        return False
    tree = script.names.tree(load)
    words = [ast.unparse(path)]
    for above in ancestors(tree.parent, load, tree.function(load)):
        words += [ast.unparse(above.test)] if isinstance(above, ast.If) else []
    return any(_BEGUN_ELSEWHERE.search(w) for w in words)
