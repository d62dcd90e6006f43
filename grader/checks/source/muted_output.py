"""Output that every rank calls for and only some make: a `print` of the script's own, loggers that ask for the rank."""

from __future__ import annotations

import ast

from grader.checks.source.missing_modules import may_set_up
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of

LOG_METHODS = {"debug", "info", "warning", "log"}
_SETTING_UP = ("setLevel", "addHandler", "addFilter", "disable", "remove")


def muted(script: Script, call: ast.Call) -> bool:
    """Whether a call that says something may be silent on some ranks, by what was set up for all such calls."""
    if name_of(call) == "print":
        return print_replaced(script)
    logs = isinstance(call.func, ast.Attribute) and is_logger(script, call.func.value)
    return logs and logs_by_rank(script)


def print_replaced(script: Script) -> bool:
    """`builtins.print = …`, `print = …`, or code that was not handed in and may do so."""
    if may_set_up(script):
        return True
    stores = [
        d
        for t in script.trees
        for d in t.attributes.get("print", ())
        if d.name.startswith(("builtins.", "__builtin"))
    ]
    return bool(stores) or any("__builtin__" in t.imports for t in script.trees)


def logs_by_rank(script: Script) -> bool:
    """Whether loggers are set up by rank: under a test of it, with an argument or by a filter that asks for it."""
    if may_set_up(script):
        return True
    set_up = [
        *script.calls("logging.basicConfig"),
        *(c for c in script.called(*_SETTING_UP) if isinstance(c.func, ast.Attribute)),
    ]
    return any(
        script.guards.partial(call) is not None
        or not script.guards.on_every_rank(call)
        or any(_speaks_of_rank(script, a) for a in (*call.args, *(k.value for k in call.keywords)))
        for call in set_up
    )


def is_logger(script: Script, node: ast.expr) -> bool:
    """Whether an expression is `logging` itself or a logger that was got from it."""
    origins = [o for o in script.values.origins(node) if isinstance(o, ast.Call)]
    made = [script.names.qualified(origin.func) for origin in origins]
    return script.names.qualified(node) == "logging" or "logging.getLogger" in made


def _speaks_of_rank(script: Script, node: ast.expr) -> bool:
    if any(script.ranks.shows_rank(n) for n in ast.walk(node)):
        return True
    if isinstance(node, ast.IfExp):
        return script.conditions.of(node.test).partial
    made = script.graph.definition(node.func if isinstance(node, ast.Call) else node)
    if made is not None and any(script.ranks.shows_rank(n) for n in ast.walk(made)):
        return True  # a filter or handler of the script's own that asks for the rank
    text = script.values.constant(node)
    return isinstance(text, str) and "rank" in text.lower()
