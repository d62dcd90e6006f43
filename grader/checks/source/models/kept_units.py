"""What keeps units of a sharded model whole after their pass: an argument of `fully_shard`, or a call on the model.

Asked only where a run has shown that they stay; it says where, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.causes import CauseInText, stands_at
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import READS, literal
from grader.model.call_site import Site

_ARGUMENT = "reshard_after_forward"
_KEEPING = ("set_reshard_after_forward", "set_reshard_after_backward")
_MAX_MORE = 2

THEN = "Each block then lets go of what it gathered when its pass is done, and gathers it again for its backward pass."
BY_DEFAULT = f"Shard the blocks with `fully_shard(block)` and no `{_ARGUMENT}`. {THEN}"
"""What is right, for all scripts."""
ROOT = (
    "Call `fully_shard(model)` below the loop over the blocks. Without it each block is the outermost unit by itself, "
    "and the outermost one keeps what it gathered."
)
"""What is missing where no unit lies around the others."""


def what_keeps(script: Script, site: Site | None, *, early: bool) -> CauseInText | None:
    """What keeps units whole that were sharded at a place; `early`: they are whole before their own pass."""
    found = (
        *(_by_call(script, "unshard") if early else ()),
        *_by_argument(script, site),
        *_by_call(script, *_KEEPING),
    )
    return found[0] if found else None


def _by_argument(script: Script, site: Site | None) -> Iterator[CauseInText]:
    for node, value in _given(script, site):
        says = f"{script.quote(value)} for `{_ARGUMENT}` at {script.at(node)} keeps what was gathered."
        what = "Leave it out" if literal(value) is False else "Let it be True, or leave it out"
        hint = f"{what} at {script.at(node)}: True is what `{_ARGUMENT}` is for blocks by default. {THEN}"
        yield CauseInText((node, *_decided(script, node, value)), says, hint)


def _by_call(script: Script, *names: str) -> Iterator[CauseInText]:
    for call in script.called(*names):
        if not call.args or script.values.constant(call.args[0]) is not True:
            says = f"{script.quote(call)} at {script.at(call)} keeps the units whole."
            yield CauseInText((call,), says, f"Leave {script.quote(call)} out. {THEN}")


def _given(script: Script, site: Site | None) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Where the argument is given, and its value, where that may be False; what is written in the call itself first."""
    calls = script.called("fully_shard")
    others = [
        c for c in calls if any(stands_at(script, o, site) for o in calls) and not stands_at(script, c, site)
    ]
    found: list[tuple[ast.AST, ast.expr]] = []
    for call in script.calls_given(_ARGUMENT):
        # The whole model may keep its own.
        found += [(k.value, k.value) for k in call.keywords if k.arg == _ARGUMENT and call not in others]
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found += [(v, v) for k, v in pairs if k is not None and literal(k) == _ARGUMENT]
            elif isinstance(node, ast.Assign):
                keys = [literal(t.slice) for t in node.targets if isinstance(t, ast.Subscript)]
                found += [(node, node.value)] * (_ARGUMENT in keys)
    at = [one for one in found if any(stands_at(script, c, site) and one[0] in ast.walk(c) for c in calls)]
    for node, value in (*at, *(one for one in found if one not in at)):
        if not (script.values.constant(value) in (True, None) or type(script.values.constant(value)) is int):
            yield node, value


def _decided(script: Script, node: ast.AST, value: ast.expr) -> list[ast.AST]:
    """Where else a value was settled: the switch of a configuration that it comes of."""
    read = [part for part in ast.walk(value) if isinstance(part, READS)]
    found = {script.at(o): o for part in read for o in script.values.origins(part) if _is_switch(o)}
    found.pop(script.at(node), None)
    return list(found.values())[:_MAX_MORE]


def _is_switch(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)
