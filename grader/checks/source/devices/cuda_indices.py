"""Where a script names CUDA devices by number: in torch's functions, in wrappers, in strings such as `f"cuda:{rank}"`.

Collects the numbers; which of them are right is for the rules to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import DISPLAYS
from grader.checks.source.training_loops import DDP

SETTERS = ("torch.cuda.set_device", "torch.accelerator.set_device_index", "torch.cuda.device")
"""What makes a device the current one."""
_ASKING = ("torch.cuda.current_device", "torch.accelerator.current_device_index")


def device_numbers(script: Script) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Calls that choose a CUDA device, each with the expression of its number."""
    named = script.calls(*SETTERS, "torch.device", DDP)
    likely = {*named, *script.called("cuda", "to"), *script.calls_given("device", "device_id", "index")}
    for call in (c for c in script.all_calls() if c in likely):
        for given in _given(script, call):
            for origin in script.values.origins(given):
                yield from ((call, number) for number in _numbers(script, origin, given))


def asks_current(script: Script, node: ast.AST) -> bool:
    """`torch.cuda.current_device()`: number 0 in every process until the process has set another."""
    return isinstance(node, ast.Call) and script.names.qualified(node.func) in _ASKING


def _given(script: Script, call: ast.Call) -> Iterable[ast.expr]:
    """Arguments of a call that name a device."""
    name = script.names.qualified(call.func)
    keywords = [k.value for k in call.keywords if k.arg in ("device", "device_id", "index")]
    if name in SETTERS:
        yield from (*call.args[:1], *keywords)
    elif name == "torch.device":
        yield from (*call.args[:2], *keywords)
    elif name == DDP:
        for argument in ("device_ids", "output_device"):
            ids = script.given(call, argument)
            if ids is not None:
                yield from _elements(script, ids)
    elif isinstance(call.func, ast.Attribute) and name is None and call.func.attr in ("cuda", "to"):
        yield from (*call.args[:1], *keywords)
    else:
        yield from keywords


def _elements(script: Script, ids: ast.expr) -> Iterable[ast.expr]:
    for origin in script.values.origins(ids):
        if isinstance(origin, DISPLAYS):
            yield from origin.elts
        elif isinstance(origin, ast.expr):
            yield origin


def _numbers(script: Script, origin: ast.AST, given: ast.expr) -> Iterable[ast.expr]:
    """The number itself, that inside `f"cuda:{n}"`, `"cuda:" + str(n)` or `"cuda:{}".format(n)`."""
    if isinstance(origin, ast.JoinedStr):
        yield from (v.value for v in origin.values if isinstance(v, ast.FormattedValue))
    elif isinstance(origin, ast.BinOp) and isinstance(origin.op, ast.Add | ast.Mod) and _is_text(origin.left):
        yield (
            origin.right.args[0] if isinstance(origin.right, ast.Call) and origin.right.args else origin.right
        )
    elif (
        isinstance(origin, ast.Call)
        and isinstance(origin.func, ast.Attribute)
        and origin.func.attr == "format"
    ):
        yield from origin.args
    elif not (isinstance(origin, ast.Call) and script.names.qualified(origin.func) == "torch.device"):
        yield given


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
