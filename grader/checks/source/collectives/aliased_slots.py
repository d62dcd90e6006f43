"""Lists that a gathering fills whose slots are all one tensor: `[torch.zeros_like(own)] * n` makes it once.

Each rank's part is then written over the one before, and every slot holds the same in the end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.causes import stands_at
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import names_in
from grader.model.call_site import Site
from grader.model.fix import Fix

_FILLED = {"all_gather": "tensor_list", "gather": "gather_list", "all_to_all": "output_tensor_list"}
"""Collectives that write into the tensors of a list. Lists of objects are filled with new objects."""
_REPEAT = "itertools.repeat"
_COLLECTING = ("list", "tuple")


@dataclass(frozen=True, slots=True)
class AliasedSlots:
    """A call that fills such a list.

    Attributes:
        call: the collective; name: its own. made: what makes the list. slot: its one tensor.
        says: what is wrong. hint: what to write, and as edits where that is certain.
    """

    call: ast.Call
    name: str
    made: ast.expr
    slot: ast.expr
    says: str
    hint: str
    fix: Fix | None

    def cause(self, script: Script) -> str:
        """What is wrong and what to write, for a finding about what came of it."""
        return f"The slots that {script.at(self.made)} makes are all one tensor. {self.hint}"


def aliased_slots(script: Script) -> Iterator[AliasedSlots]:
    """All of them, in the order of the collectives' names."""
    for name, argument in _FILLED.items():
        for call in script.calls(f"torch.distributed.{name}"):
            filled = script.argument(call, argument)
            origins = script.values.origins(filled) if isinstance(filled, ast.expr) else ()
            for made in origins if filled is not UNKNOWN else ():
                found = _one_tensor(script, made)
                if found is not None and isinstance(made, ast.expr):
                    yield _as_cause(script, call, name, made, found)
                    break


def slots_at(script: Script, site: Site | None) -> AliasedSlots | None:
    """The one whose list a run saw filled at a place."""
    return next((one for one in aliased_slots(script) if stands_at(script, one.call, site)), None)


def _one_tensor(script: Script, made: ast.AST) -> tuple[ast.expr, ast.expr | None] | None:
    """The tensor that stands in every slot of a list, and what says how many there are."""
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
        listed, times = made.left, made.right
        if not isinstance(listed, ast.List | ast.Tuple):
            listed, times = times, listed
        one = isinstance(listed, ast.List | ast.Tuple) and len(listed.elts) == 1
        slot = listed.elts[0] if one and isinstance(listed, ast.List | ast.Tuple) else None
        several = script.values.constant(times) != 1
        return (slot, times) if slot is not None and several and not _of_none(script, slot) else None
    if isinstance(made, ast.ListComp) and len(made.generators) == 1:
        # Whatever is called or looked up in each round may be another tensor there.
        over, slot = made.generators[0], made.elt
        return (slot, None) if isinstance(slot, ast.Name) and slot.id not in names_in(over.target) else None
    collects = isinstance(made, ast.Call) and script.names.qualified(made.func) in _COLLECTING and made.args
    repeat = made.args[0] if collects and isinstance(made, ast.Call) else None
    if (
        isinstance(repeat, ast.Call)
        and script.names.qualified(repeat.func) == _REPEAT
        and len(repeat.args) == 2
    ):
        return repeat.args[0], repeat.args[1]
    return None


def _of_none(script: Script, slot: ast.expr) -> bool:
    return script.values.constant(slot) is None


def _as_cause(
    script: Script, call: ast.Call, name: str, made: ast.expr, found: tuple[ast.expr, ast.expr | None]
) -> AliasedSlots:
    slot, times = found
    # A tensor that was made before is still needed for its shape alone.
    new = (
        node_text(script, slot)
        if isinstance(slot, ast.Call)
        else f"torch.empty_like({node_text(script, slot)})"
    )
    number = node_text(script, times) if times is not None else "dist.get_world_size()"
    written = f"[{new} for _ in range({number})]"
    fix = None
    if isinstance(slot, ast.Call) and times is not None:
        edits = Edits(script)
        edits.replace(made, f"[{edits.text(slot)} for _ in range({edits.text(times)})]")
        fix = edits.fix("Makes a tensor for each slot.")
    return AliasedSlots(
        call,
        name,
        made,
        slot,
        f"{script.at(made)} makes one tensor and puts it into every slot of the list that `{name}` fills "
        f"({script.at(call)}): {script.quote(made)}. Each rank's part is written over the one before, so all slots "
        "hold the same in the end, the part of one rank.",
        f"Make a tensor for each slot: `{written}`.",
        fix,
    )
