"""Output that every rank calls for and only some make: loggers, the standard output or `print` are set up by rank."""

from __future__ import annotations

import ast

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.missing_modules import may_set_up
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, name_of

LOG_METHODS = {"debug", "info", "warning", "log"}
_LOGGING = ("setLevel", "addHandler", "addFilter", "disable", "remove")
_LOGGING_STORES = ("disabled", "handlers", "level", "propagate")
_REDIRECTING = ("contextlib.redirect_stdout", "os.dup2")


def muted(script: Script, call: ast.Call) -> bool:
    """Whether a call that says something may be silent on some ranks, by what was set up for all such calls."""
    if name_of(call) == "print":
        return prints_by_rank(script)
    logs = isinstance(call.func, ast.Attribute) and is_logger(script, call.func.value)
    return logs and logs_by_rank(script)


def prints_by_rank(script: Script) -> bool:
    """Whether `print` is replaced or the standard output sent elsewhere by rank, or code not handed in may do so."""
    if may_set_up(script) or any("__builtin__" in t.imports for t in script.trees):
        return True
    if any(d.name.startswith(("builtins.", "__builtin")) for d in _stores(script, "print")):
        return True
    stores = [d for d in _stores(script, "stdout") if d.name == "sys.stdout"]
    return _set_up_by_rank(script, script.calls(*_REDIRECTING), stores)


def logs_by_rank(script: Script) -> bool:
    """Whether loggers are set up by rank, or code not handed in may do so."""
    calls = [c for c in script.called(*_LOGGING) if isinstance(c.func, ast.Attribute)]
    stores = [
        d
        for d in _stores(script, *_LOGGING_STORES)
        if isinstance(d.node, ast.Assign)
        and any(isinstance(t, ast.Attribute) and is_logger(script, t.value) for t in d.node.targets)
    ]
    every = [*script.calls("logging.basicConfig"), *calls]
    return may_set_up(script) or _set_up_by_rank(script, every, stores)


def is_logger(script: Script, node: ast.expr) -> bool:
    """Whether an expression is `logging` itself or a logger that was got from it."""
    origins = [o for o in script.values.origins(node) if isinstance(o, ast.Call)]
    made = [script.names.qualified(origin.func) for origin in origins]
    return script.names.qualified(node) == "logging" or "logging.getLogger" in made


def _stores(script: Script, *attributes: str) -> list[Definition]:
    return [d for t in script.trees for name in attributes for d in t.attributes.get(name, ())]


def _set_up_by_rank(script: Script, calls: list[ast.Call], stores: list[Definition]) -> bool:
    """Whether a call or a store stands under a test of the rank, or has the rank in what it is given."""
    given: list[tuple[ast.AST, list[ast.expr]]] = [(c, arguments_of(c)) for c in calls]
    given += [(d.node, [d.value]) for d in stores if d.value is not None]
    return any(
        script.guards.partial(place) is not None
        or not script.guards.on_every_rank(place)
        or any(_speaks_of_rank(script, value) for value in values)
        for place, values in given
    )


def _speaks_of_rank(script: Script, node: ast.expr) -> bool:
    if any(
        script.ranks.shows_rank(n) or script.conditions.of(n).partial for n in script.values.closure(node)
    ):
        return True
    made = script.graph.definition(node.func if isinstance(node, ast.Call) else node)
    if made is not None and any(script.ranks.shows_rank(n) for n in ast.walk(made)):
        return True  # a filter or handler of the script's own that asks for the rank
    text = script.values.constant(node)
    return isinstance(text, str) and "rank" in text.lower()
