"""Which calls write a file, and to which path: checkpoints, and files of other kinds.

Sharded and distributed checkpoints are not among them: all ranks are meant to write those. Who runs a write is not
asked here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import SIGNATURES, keyword_value
from grader.checks.source.script import Script

_CHECKPOINTS = {
    "torch.save": "f", "torch.jit.save": "f", "safetensors.torch.save_file": "filename",
    "safetensors.torch.save_model": "filename",
}  # fmt: skip
_FIRST_IS_PATH = {
    "numpy.save",
    "numpy.savez",
    "numpy.savez_compressed",
    "numpy.savetxt",
    "matplotlib.pyplot.savefig",
}


def checkpoints(script: Script) -> Iterable[tuple[ast.Call, ast.expr | None]]:
    """Calls that write a checkpoint, each with its path; None where none is given."""
    for name, parameter in _CHECKPOINTS.items():
        for call in script.calls(name):
            paths = _by_callers(script, call, name, parameter) or (script.argument(call, parameter),)
            yield from ((call, path) for path in paths)


def files(script: Script) -> Iterable[tuple[ast.Call, ast.expr | None]]:
    """Calls that write another file, each with its path."""
    for call in script.calls("open"):
        mode = call.args[1] if len(call.args) > 1 else keyword_value(call, "mode")
        said = script.values.constant(mode)
        if isinstance(said, str) and said[:1] in ("w", "x") and call.args:
            yield call, call.args[0]
    for name in _FIRST_IS_PATH:
        for call in script.calls(name):
            if call.args:
                yield call, call.args[0]
    for call in script.called("write_text", "write_bytes"):
        if isinstance(call.func, ast.Attribute):
            yield call, call.func.value


def appends(script: Script) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Calls that open a file to add to it, each with its path: `open(path, "a")`, `Path(path).open("a")`."""
    for call in script.called("open"):
        method = isinstance(call.func, ast.Attribute) and script.names.qualified(call.func) is None
        given = [*([call.func.value] if method and isinstance(call.func, ast.Attribute) else ()), *call.args]
        mode = given[1] if len(given) > 1 else keyword_value(call, "mode")
        said = script.values.constant(mode)
        if given and isinstance(said, str) and said[:1] == "a" and len(said) < 4:
            yield call, given[0]


def _by_callers(script: Script, call: ast.Call, name: str, parameter: str) -> list[ast.expr]:
    """What callers of `def save(*args, **options): torch.save(*args, **options)` give as an argument of its call."""
    function, given = script.names.tree(call).function(call), next(iter(call.args), None)
    rest = function.args.vararg if function is not None else None
    handed = isinstance(given, ast.Starred) and isinstance(given.value, ast.Name) and given.value.id
    if function is None or rest is None or handed != rest.arg:
        return []
    before = len(function.args.posonlyargs) + len(function.args.args)
    found: list[ast.expr] = []
    for site in script.graph.sites(function):
        place = before - site.skipped + SIGNATURES[name].index(parameter)
        plain = not any(isinstance(a, ast.Starred) for a in site.args[: place + 1])
        if parameter in site.keywords:
            found.append(site.keywords[parameter])
        elif plain and place < len(site.args):
            found.append(site.args[place])
    return found
