"""Started functions whose parameter for their process's number does not stand where `mp.spawn` gives it: in front.

Speaks only where something that surely is no number of a process comes in under the name of a rank.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, Function


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A parameter that is called a rank, of a function that a spawn starts, and what it is given there."""

    function: Function
    parameter: ast.arg
    given: ast.expr

    @property
    def names(self) -> list[str]:
        """The function's parameters in their order."""
        return [p.arg for p in _positional(self.function)]


def number_taken_elsewhere(script: Script, spawn: ast.Call) -> Misplaced | None:
    """The parameter that a spawned function takes its process's number as, where it isn't the first one."""
    target = script.argument(spawn, "fn")
    function = script.graph.definition(target) if isinstance(target, ast.expr) else None
    if not isinstance(function, FUNCTIONS) or function in script.graph.class_of:
        return None
    parameters = _positional(function)
    site = next((s for s in script.graph.sites(function) if s.call is spawn), None)
    if site is None or not parameters or script.ranks.called_rank(parameters[0]):
        return None
    for parameter in parameters[1:]:
        given = script.graph.bound(site, function, parameter.arg)
        if given is not None and script.ranks.called_rank(parameter) and _is_no_rank(script, given):
            return Misplaced(function, parameter, given)
    return None


def is_namespace(script: Script, args: ast.expr) -> bool:
    """Whether a value is what `parser.parse_args()` returns."""
    origins = script.values.origins(args) if isinstance(args, ast.Name | ast.Attribute) else ()
    return bool(origins) and all(
        isinstance(o, ast.Call) and isinstance(o.func, ast.Attribute) and o.func.attr == "parse_args"
        for o in origins
    )


def _positional(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _is_no_rank(script: Script, given: ast.expr) -> bool:
    """Options, a text, a number of processes: none of them tells one process from another."""
    if given is UNKNOWN or script.ranks.rank(given):
        return False
    made = (ast.Dict, *DISPLAYS, ast.JoinedStr)
    options = all(isinstance(o, made) for o in script.values.origins(given)) or is_namespace(script, given)
    return options or isinstance(script.values.constant(given), str) or bool(script.ranks.world(given))
