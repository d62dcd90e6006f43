"""What `*numbers` of a function holds: all that its calls give it beyond its other parameters.

Of all calls together: who asks has to know that one call gives no part of what another one does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS


def handed_to_rest(names: Names, calls: Calls, parameter: ast.AST) -> Iterator[ast.expr]:
    """These arguments of all calls; nothing for what is no such parameter."""
    if not isinstance(parameter, ast.arg):
        return
    above = names.tree(parameter).parent
    function = above[above[parameter]]
    if not isinstance(function, FUNCTIONS) or function.args.vararg is not parameter:
        return
    before = len(function.args.posonlyargs) + len(function.args.args)
    for site in calls.sites(function):
        yield from site.args[before - site.skipped :]
