"""Weights that were saved where nobody reads them, or as something else: what to write there, in the script's names."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.needed_lines import wrapped_name
from grader.checks.source.causes import weight_saves
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, walk
from grader.model.finding import Location
from grader.model.fix import Fix

_GIVEN = {"torch.save": "obj", "safetensors.torch.save_file": "tensors"}
_FILE = {"torch.save": "f", "safetensors.torch.save_file": "filename"}
_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".safetensors", ".pkl")


@dataclass(frozen=True, slots=True)
class BetterSave:
    """The expression to change, what stands in its place, and the edit."""

    node: ast.expr
    written: str
    fix: Fix | None


def name_as_asked(script: Script, where: Iterable[Location]) -> BetterSave | None:
    """The name of the file in the one save of weights at these places, where it is written out and is not the asked."""
    for call in _saves_at(script, where):
        wanted = "model.safetensors" if name_of(call).startswith("save_file") else "model.pt"
        given = script.argument(call, _FILE.get(script.names.qualified(call.func) or "", "f"))
        parts = script.values.closure(given) if isinstance(given, ast.expr) and given is not UNKNOWN else ()
        named = [p for p in parts if isinstance(p, ast.Constant) and _is_file(p.value)]
        named = [p for p in named if not isinstance(script.names.tree(p).parent.get(p), ast.JoinedStr)]
        if len(named) != 1 or named[0].value == wanted:
            continue
        edits = Edits(script)
        before, slash, _ = str(named[0].value).rpartition("/")
        written = f'"{before}{slash}{wanted}"'
        edits.replace(named[0], written)
        return BetterSave(named[0], written, edits.fix("Writes the file that is asked for."))
    return None


def weights_alone(script: Script, where: Iterable[Location]) -> BetterSave | None:
    """What the one save at these places is given, where it is no network's state dict, and the state dict to give."""
    for call in _saves_at(script, where):
        given = script.argument(call, _GIVEN.get(script.names.qualified(call.func) or "", "obj"))
        if not isinstance(given, ast.expr) or given is UNKNOWN:
            continue
        written = _kept_in(script, given) or _of_network(script, given) or _of_wrapped(script, call, given)
        if written:
            edits = Edits(script)
            edits.replace(given, written)
            return BetterSave(given, written, edits.fix("Saves the network's own weights."))
    return None


def _saves_at(script: Script, where: Iterable[Location]) -> list[ast.Call]:
    """The save of weights at some places, where it is one alone."""
    places = list(where)
    found = [
        call for call in weight_saves(script) if isinstance(call, ast.Call) and _is_at(script, call, places)
    ]
    return found if len(found) == 1 else []


def _is_at(script: Script, call: ast.Call, places: Iterable[Location]) -> bool:
    own = script.location(call)
    return any(p.path == own.path and own.line <= p.line <= (own.end_line or own.line) for p in places)


def _is_file(value: object) -> bool:
    return isinstance(value, str) and value.endswith(_ENDINGS)


def _takes_state(script: Script, node: ast.AST) -> bool:
    """Whether an expression is a network's state dict."""
    func = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "state_dict"
        and script.networks.is_network(func.value)
    )


def _kept_in(script: Script, given: ast.expr) -> str:
    """The network's state dict out of a dictionary that keeps other things as well; "" where there is no such one."""
    shown = [o for o in script.values.origins(given) if isinstance(o, ast.Dict)]
    if len(shown) != 1 or script.names.tree(shown[0]) is not script.names.tree(given):
        return ""
    states = [value for value in shown[0].values if _takes_state(script, value)]
    return Edits(script).text(states[0]) if len(states) == 1 else ""


def _of_network(script: Script, given: ast.expr) -> str:
    """The state dict of a network that is saved as an object."""
    if not isinstance(given, ast.Name | ast.Attribute) or not script.networks.is_network(given):
        return ""
    inner = ".module" if script.training.wrapped(given) and not ast.unparse(given).endswith(".module") else ""
    return f"{Edits(script).text(given)}{inner}.state_dict()"


def _of_wrapped(script: Script, call: ast.Call, given: ast.expr) -> str:
    """The state dict of the model that the same file wraps, where another thing's was taken."""
    taken = isinstance(given, ast.Call) and name_of(given) in ("state_dict", "parameters")
    if not taken or _takes_state(script, given):
        return ""
    tree = script.names.tree(call)
    model = wrapped_name(script, tree.path)
    function = tree.function(call)
    held = "." in model or function is None
    return f"{model}.module.state_dict()" if model and (held or _has_name(tree.function(call), model)) else ""


def _has_name(function: ast.AST | None, name: str) -> bool:
    """Whether a function has a name, given or made there."""
    return function is not None and any(
        (isinstance(n, ast.arg) and n.arg == name) or (isinstance(n, ast.Name) and n.id == name)
        for n in walk(function)
    )
