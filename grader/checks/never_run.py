"""Advice to call what stands there already, in a function that nobody calls: it says so, whichever rule gives it.

One place for all rules. What a run lacks, such as `set_epoch`, may be written down in a hook that its loop never asks
for; to write it once more is no help, and a reason that blames the line's own words would be wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypedDict

from grader.model.finding import Location

if TYPE_CHECKING:
    from grader.checks.source.script import Script

_ASKED_FOR = (
    "DistributedDataParallel", "all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast",
    "clip_grad_norm_", "destroy_process_group", "eval", "gather", "gather_object", "load_state_dict", "manual_seed",
    "reduce", "save", "set_epoch", "step", "unscale_", "zero_grad",
)  # fmt: skip
"""What rules tell learners to call."""
_CALLED = re.compile(r"\b(\w+)\(")
_CODE = re.compile(r"`([^`]+)`")


class HitWords(TypedDict):
    """Of a hit: its message, its hint and its places."""

    message: str
    hint: str
    where: tuple[Location, ...]


def telling_what_never_runs(script: Script, message: str, hint: str, where: tuple[Location, ...]) -> HitWords:
    """A hit's texts and places, with the first call that its hint asks for and that stands where nothing comes by."""
    asked = dict.fromkeys(name for code in _CODE.findall(hint) for name in _CALLED.findall(code))
    for name in asked:
        calls = script.called(name) if name in _ASKED_FOR else []
        kept = [(call, function) for call in calls if (function := script.unreached.above(call)) is not None]
        for call, function in kept[:1]:
            near, at = script.unreached.called_instead(function), script.at(function)
            instead = f"; {script.at(near[1])} calls `{near[0]}`" if near else ""
            says = f"{script.at(call)} calls `{name}`, and never runs, because nobody calls `{function.name}`{instead}."
            mends = (
                f"Write `{near[0]}` instead of `{function.name}` at {at}: by that name it is called."
                if near
                else f"Call `{function.name}` of {at}, where that stands already."
            )
            return HitWords(
                message=f"{message.rstrip()} {says}",
                hint=mends if len(kept) == len(calls) else f"{mends} {hint}",
                where=tuple(dict.fromkeys((script.location(call), script.location(function), *where))),
            )
    return HitWords(message=message, hint=hint, where=where)
