"""Where values are put one behind the other into one vector, and where that is cut up again.

Asked only where a scorer has found right numbers in wrong places; decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start, walk

PACK_FORMULA = (
    "Put the gradients into the vector and cut it up in one order of the parameters: keep it in one list, such as "
    "`names = [name for name, _ in model.named_parameters()]`, and go through that list both times."
)
_JOINING = ("cat", "concat", "concatenate", "hstack", "parameters_to_vector", "_flatten_dense_tensors")
_CUTTING = ("split", "split_with_sizes", "vector_to_parameters", "_unflatten_dense_tensors")
_ORDERING = ("sorted", "reversed")


def packed(script: Script) -> Cause | None:
    """Both lines, and which of them goes its own way."""
    joins = [c for c in script.called(*_JOINING) if script.names.qualified(c.func)]
    cuts = [c for c in script.called(*_CUTTING) if not _of_text(c)]
    if not joins or not cuts:
        return None
    join = next((c for c in joins if _ordering(c) is not None), joins[0])
    cut = next((c for c in cuts if _ordering(c) is not None), cuts[0])
    own = [(c, o) for c in (join, cut) if (o := _ordering(c)) is not None]
    advice = PACK_FORMULA
    if len(own) == 1:
        call, order = own[0]
        other = cut if call is join else join
        says = f"{script.quote(order)} at {script.at(order)} orders the parameters otherwise than {script.at(other)}"
        advice = f"{says} takes them. {PACK_FORMULA}"
    return Cause(tuple(sorted((join, cut), key=start)), advice)


def _ordering(call: ast.Call) -> ast.Call | None:
    """`sorted(names)` or `reversed(params)` in what a call is given."""
    inner = (n for n in walk(call) if isinstance(n, ast.Call) and n is not call)
    return next((n for n in inner if name_of(n) in _ORDERING), None)


def _of_text(call: ast.Call) -> bool:
    """`line.split(",")`."""
    return not call.args or (isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str))
