"""What ranks tell each other without a collective that reduces or gathers: messages, and one broadcast from each rank.

Either way every rank's part may reach the others. Whether it does is not asked here.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.libraries.names import Names
from grader.checks.source.values.sources import Values

_MESSAGES = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "batch_isend_irecv", "irecv", "isend", "recv", "recv_object_list", "send", "send_object_list",
    )
)  # fmt: skip
_BROADCASTS = frozenset({"torch.distributed.broadcast", "torch.distributed.broadcast_object_list"})


def is_message(names: Names, call: ast.Call) -> bool:
    """Whether a call sends from one rank to one other, or receives from it."""
    return names.qualified(call.func) in _MESSAGES


def is_turn(names: Names, values: Values, call: ast.Call) -> bool:
    """Whether a broadcast comes from one rank after the other: `for r in range(world): broadcast(box[r], src=r)`."""
    if names.qualified(call.func) not in _BROADCASTS:
        return False
    source = keyword_value(call, "src")
    if source is None and len(call.args) > 1:
        source = call.args[1]
    return source is not None and any(
        isinstance(origin, ast.For | ast.AsyncFor | ast.comprehension) for origin in values.origins(source)
    )
