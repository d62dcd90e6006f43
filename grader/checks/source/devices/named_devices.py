"""Which calls of a script choose a device, and what tells them which: the rank, a number that is written down, nothing.

Follows each name to all that may lie in it. Whether that is right for several ranks is for a rule to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from enum import Enum

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.devices.cuda_indices import SETTERS, asks_current
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import DISPLAYS
from grader.checks.source.training_loops import DDP

_CUDA = re.compile(r"^cuda(:(\d+))?$")


class Named(Enum):
    """How a device is told."""

    NOTHING = 0
    CURRENT = 1
    FIXED = 2
    OTHER = 3
    """By rank, or by something that nobody can follow."""


def device_choices(script: Script) -> Iterable[tuple[ast.Call, ast.expr | None]]:
    """Calls that choose a device, with the expression that names it (None: the current one)."""
    named = script.calls(*SETTERS, "torch.device", DDP)
    likely = {*named, *script.called("cuda", "to"), *script.calls_given("device")}
    dropped = dropped_devices(script)
    for call in (c for c in script.all_calls() if c in likely and c not in dropped):
        name = script.names.qualified(call.func)
        method = call.func.attr if isinstance(call.func, ast.Attribute) and name is None else ""
        keyword = keyword_value(call, "device")
        if name in SETTERS and (call.args or keyword is not None):
            yield call, call.args[0] if call.args else keyword
        elif name == "torch.device" and call.args:
            number = call.args[1] if len(call.args) > 1 else keyword_value(call, "index")
            yield call, number if number is not None and _is_cuda(script, call.args[0]) else call.args[0]
        elif name == DDP:
            ids = script.argument(call, "device_ids")
            if ids is not None and any(isinstance(o, DISPLAYS) for o in script.values.origins(ids)):
                yield call, ids
        elif method == "cuda":
            yield call, call.args[0] if call.args else keyword
        elif method == "to" and call.args and _is_plain(script, call.args[0]):
            yield call, call.args[0]
        elif keyword is not None and isinstance(keyword, ast.Constant) and name != "dict":
            yield call, keyword


def dropped_devices(script: Script) -> list[ast.Call]:
    """`torch.cuda.device(local_rank)` on a line of its own: an object that nobody keeps, and no choice of a device."""
    made = script.calls("torch.cuda.device", "torch.device")
    return [c for c in made if isinstance(script.names.tree(c).parent.get(c), ast.Expr)]


def sets_current(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a device the current one."""
    return script.names.qualified(call.func) in SETTERS


def starts_cuda(script: Script, call: ast.Call) -> bool:
    """Whether CUDA is up, with the GPUs that the process sees then, once a call has been made."""
    name = script.names.qualified(call.func) or ""
    if name in (*SETTERS, "torch.cuda.init", "torch.cuda.current_device", "torch.cuda.get_device_name"):
        return True
    if name.startswith(("torch.cuda.manual_seed", "torch.cuda.empty_cache", "torch.cuda.memory")):
        return False  # waits until CUDA is there
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not name


def pins(script: Script, value: ast.expr | None) -> bool:
    """Whether a setter is given a rank's own device, by number or as `torch.device("cuda", local_rank)`."""
    if how_named(script, value) is Named.OTHER:
        return True
    built = script.values.origins(value) if value is not None and value is not UNKNOWN else ()
    return any(how_named(script, v) is Named.OTHER for node, v in device_choices(script) if node in built)


def how_named(script: Script, value: ast.expr | None) -> Named:
    """How an expression tells a device; of several values that it may have, one by rank counts."""
    if value is None:
        return Named.CURRENT
    if value is UNKNOWN:
        return Named.OTHER
    return max(
        (_origin(script, o) for o in told_by(script, value)), key=lambda n: n.value, default=Named.NOTHING
    )


def told_by(script: Script, value: ast.expr | None) -> list[ast.AST]:
    """Where the name of a device comes from; of `device_ids=[0]` the one number in the list."""
    if value is None:
        return []
    found: list[ast.AST] = []
    for origin in script.values.origins(value):
        if not isinstance(origin, DISPLAYS):
            found.append(origin)
        elif len(origin.elts) == 1:
            found += script.values.origins(origin.elts[0])
    return found


def _is_plain(script: Script, given: ast.expr) -> bool:
    """Whether what a `.to(…)` is given may be a device that is told here: no tensor, no attribute of one."""
    if isinstance(given, ast.Subscript):
        return script.values.origins(given) != (given,)
    return isinstance(given, ast.Constant | ast.JoinedStr | ast.Name)


def _origin(script: Script, origin: ast.AST) -> Named:
    if asks_current(script, origin):
        return Named.CURRENT
    if isinstance(origin, ast.Constant):
        if isinstance(origin.value, str):
            match = _CUDA.match(origin.value)
            return Named.NOTHING if match is None else Named.FIXED if match[1] else Named.CURRENT
        is_number = isinstance(origin.value, int) and not isinstance(origin.value, bool)
        return Named.FIXED if is_number else Named.NOTHING
    if isinstance(origin, ast.Call) and script.names.qualified(origin.func) == "torch.device":
        return Named.NOTHING  # judged where it is built
    if isinstance(origin, ast.Attribute) and script.names.qualified(origin) is not None:
        return Named.NOTHING  # `.to(torch.float32)`
    return Named.OTHER


def _is_cuda(script: Script, node: ast.expr) -> bool:
    said = script.values.constant(node)
    return not isinstance(said, str) or said.startswith("cuda")
