"""Lines that pasted code needs above it: the imports of well-known names, and values that every script reads alike.

One table for all advice. A rule writes `model = DistributedDataParallel(model)` and no more; where a script has no such
name, the line that gives it one stands with the advice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from grader.checks.source.libraries.names import canonical
from grader.checks.source.ranks.own_names import own_value
from grader.model.syntax_tree import parse_text

if TYPE_CHECKING:
    from grader.checks.source.script import Script
    from grader.checks.source.syntax.tree import Tree

START_GROUP = 'dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")'
"""Starts a group on GPUs and on CPUs."""
_STATE_DICT = "torch.distributed.checkpoint.state_dict"
_LINES = {
    "copy": "import copy",
    "os": "import os",
    "sys": "import sys",
    "functools": "import functools",
    "zlib": "import zlib",
    "np": "import numpy as np",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "optim": "from torch import optim",
    "dist": "import torch.distributed as dist",
    "mp": "import torch.multiprocessing as mp",
    "DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP",
    "DataLoader": "from torch.utils.data import DataLoader",
    "DistributedSampler": "from torch.utils.data import DistributedSampler",
    "Subset": "from torch.utils.data import Subset",
    "fully_shard": "from torch.distributed.fsdp import fully_shard",
    "get_model_state_dict": f"from {_STATE_DICT} import get_model_state_dict",
    "StateDictOptions": f"from {_STATE_DICT} import StateDictOptions",
    "local_rank": 'local_rank = int(os.environ["LOCAL_RANK"])',
    "rank": "rank = dist.get_rank()",
    "world_size": "world_size = dist.get_world_size()",
}
_CODE = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w)(?!\s*=[^=])")
"""A name that code reads; not an attribute, not what is set or given by keyword."""
_GIVEN = re.compile(r"(?<![\w.])model\s*=[^=]")


def import_of(name: str) -> str:
    """The line that imports a well-known name, "" where it is none."""
    line = _LINES.get(name, "")
    return line if line.startswith(("import ", "from ")) else ""


def import_for(dotted: str) -> tuple[str, str] | None:
    """How code writes a library's name where only a line of the table imports it, and that line; None: no line does.

    `dist.get_rank` and `import torch.distributed as dist` for `torch.distributed.get_rank`.
    """
    found = [
        (full, name) for name in _LINES if (full := _imported(name)) and f"{dotted}.".startswith(f"{full}.")
    ]
    if not found:
        return None
    full, name = max(found, key=lambda pair: len(pair[0]))
    return name + dotted[len(full) :], _LINES[name]


def _imported(name: str) -> str:
    """The full name of what a line of the table imports, "" where it imports nothing."""
    line = import_of(name)
    if line.startswith("from "):
        module, _, what = line.removeprefix("from ").partition(" import ")
        return f"{module}.{what.partition(' as ')[0]}"
    return line.removeprefix("import ").partition(" as ")[0]


def in_own_names(advice: str, script: Script, path: str = "") -> str:
    """Advice whose code calls a library's names, and the wrapped model, what the script calls them: `td.barrier()`.

    Args:
        advice: plain text, code between backquotes.
        script: what it is for; path: the file that it is about, "" for any.
    """

    def renamed(code: re.Match[str]) -> str:
        return _NAME.sub(lambda name: (own.get(name[0]) if _is_code(name) else "") or name[0], code[0])

    read = set(_NAME.findall(" ".join(_CODE.findall(advice))))
    own = {name: _own_name(script, path, name) for name in read if import_of(name)}
    if "model" in read and not _GIVEN.search(advice):
        own["model"] = "" if _has(script, path, "model") else wrapped_name(script, path)
    return _CODE.sub(renamed, advice) if any(own.values()) else advice


def _is_code(name: re.Match[str]) -> bool:
    """Whether a name is no part of a path in a text, as in `"model.pt"`."""
    return name.string[name.start() - 1 : name.start()] not in ('"', "'", "/")


def wrapped_name(script: Script, path: str) -> str:
    """What a file calls the model that it wraps in DDP, `self.model`; "" where it wraps none, or several."""
    found = set[str]()
    for wrap in script.training.wraps:
        tree = script.names.tree(wrap)
        statement = tree.statement(wrap)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if tree.path == path and isinstance(target, ast.Name | ast.Attribute):
            found.add(ast.unparse(target))
    return found.pop() if len(found) == 1 else ""


def with_needed_lines(advice: str, script: Script, path: str = "", line: int = 0) -> str:
    """Advice in the script's own names, and behind it the lines that its code needs and that the script lacks.

    Args:
        advice: plain text, code between backquotes.
        script: what it is for; path, line: the place that it is about, "" and 0 for any.
    """
    advice = in_own_names(script.frameworks.in_its_words(advice), script, path)
    lacking = [n for n in _needs(advice) if not _has(script, path, n) and not _own_name(script, path, n)]
    held = {name: own for name in lacking if (own := own_value(script, path, line, name))}
    if held:
        advice = _CODE.sub(lambda code: _NAME.sub(lambda n: held.get(n[0], n[0]), code[0]), advice)
        lacking = [n for n in _needs(advice) if not _has(script, path, n) and not _own_name(script, path, n)]
    if not lacking:
        return advice
    lines = sorted(
        (_LINES[name] for name in lacking), key=lambda line: not line.startswith(("import ", "from "))
    )
    listed = in_own_names(", ".join(f"`{line}`" for line in lines), script, path)
    return f"{advice} Above it your script needs {listed}."


@lru_cache(maxsize=512)
def _needs(advice: str) -> tuple[str, ...]:
    """Names of the table that the code of an advice reads and does not set itself, what others need first."""
    read, bound = dict[str, None](), set[str]()
    for code in _CODE.findall(advice):
        for node in _nodes(code):
            for name in _bound(node):
                bound.add(name)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[node.id] = None
    found = dict[str, None]()
    for name in read:
        if name in _LINES and name not in bound:
            found |= dict.fromkeys((*(n for n in _needs(f"`{_LINES[name]}`") if n not in bound), name))
    return tuple(found)


def _nodes(code: str) -> Iterator[ast.AST]:
    """Of code that does something: a name that is only mentioned needs nothing."""
    text = code.replace("…", "...")
    for attempt in (text, f"{text} pass"):
        try:
            tree = parse_text(attempt)
        except (SyntaxError, ValueError):
            continue
        mentioned = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr)
        if not (mentioned and isinstance(tree.body[0].value, ast.Name | ast.Attribute)):  # type: ignore[attr-defined]
            yield from ast.walk(tree)
        return


def _bound(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _own_name(script: Script, path: str, name: str) -> str:
    """What a file that lacks a name of the table calls the same thing, by an import; "" where it has no name for it."""
    if _has(script, path, name):
        return ""
    full = canonical(_imported(name)) if import_of(name) else ""
    return next(
        (
            own
            for tree in _trees(script, path)
            for scope in tree.definitions.values()
            for own, made in scope.items()
            if "." not in own and all(d.kind == "import" and canonical(d.dotted) == full for d in made)
        ),
        "",
    )


def _trees(script: Script, path: str) -> Sequence[Tree]:
    return [tree for tree in script.trees if tree.path == path] or script.trees


def _has(script: Script, path: str, name: str) -> bool:
    trees = _trees(script, path)
    return any(tree.stars or any(name in scope for scope in tree.definitions.values()) for tree in trees)
