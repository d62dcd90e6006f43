"""`ReduceLROnPlateau` in the mode of another number: `max` with a loss, or `min`, its default, with an accuracy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.causes import stands_at
from grader.checks.source.metrics.figure_kinds import ACCURACY, LOSS, kind_of
from grader.checks.source.optimisation.schedules import SCHEDULES, steps_of
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import literal
from grader.model.call_site import Site

WANTED = {LOSS: "min", ACCURACY: "max"}
"""Of each kind of number, the mode in which its getting better counts as such."""
_BETTER = {LOSS: "smaller", ACCURACY: "larger"}


@dataclass(frozen=True, slots=True)
class PlateauMode:
    """A schedule whose mode does not fit what it is given.

    Attributes:
        made: builds it. written: where its mode is written, else `made`. step: gives it the number.
        kind: of that number. sure: known by how it is made, and not by its name alone.
        says, hint: as sentences.
    """

    made: ast.Call
    written: ast.AST
    step: ast.Call
    kind: str
    sure: bool
    says: str
    hint: str


def wrong_modes(script: Script) -> Iterator[PlateauMode]:
    """All of them of which the text says both."""
    for made in script.calls(f"{SCHEDULES}ReduceLROnPlateau"):
        mode, written = mode_of(script, made)
        for step in steps_of(script, made) if mode else ():
            given = script_given(step)
            found = kind_of(script, given) if given is not None else None
            if found is None or not found.kind or mode == WANTED[found.kind]:
                continue
            number = f"a {found.kind}" if found.kind == LOSS else f"an {found.kind}"
            assert given is not None
            yield PlateauMode(
                made,
                written,
                step,
                found.kind,
                found.sure,
                f"{script.at(made)} makes `ReduceLROnPlateau` in mode `{mode}`{default_of(made, written)}, and "
                f"{script.at(step)} gives it {number}, {script.quote(given)}, which is better the "
                f"{_BETTER[found.kind]} it is.",
                hint_for(script, made, written, found.kind),
            )


def mode_of(script: Script, made: ast.Call) -> tuple[str, ast.AST]:
    """The mode of such a schedule, "" unknown, and where it is written: in its call, or in the options that it gets."""
    given = script.argument(made, "mode")
    if given is not None and given is not UNKNOWN:
        mode = script.values.constant(given)
        constants = [o for o in script.values.origins(given) if isinstance(o, ast.Constant)]
        return mode if isinstance(mode, str) else "", constants[0] if len(constants) == 1 else given
    unpacked = [k.value for k in made.keywords if k.arg is None]
    written = [
        value
        for options in unpacked
        for node in script.values.closure(options)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None and literal(key) == "mode"
    ]
    modes = {literal(value) for value in written}
    mode = modes.pop() if len(modes) == 1 else None
    if isinstance(mode, str):
        return mode, written[0]
    return ("min" if given is None else ""), made


def made_at(script: Script, site: Site | None) -> ast.Call | None:
    """The call that made such a schedule at a place."""
    return next(
        (c for c in script.calls(f"{SCHEDULES}ReduceLROnPlateau") if stands_at(script, c, site)), None
    )


def fed_at(script: Script, site: Site | None) -> ast.expr | None:
    """What a schedule is given at a place."""
    return next(
        (script_given(c) for c in script.called("step") if stands_at(script, c, site) if script_given(c)),
        None,
    )


def script_given(step: ast.Call) -> ast.expr | None:
    """The number in a call of such a schedule's `step`."""
    named = next((k.value for k in step.keywords if k.arg == "metrics"), None)
    return step.args[0] if step.args else named


def default_of(made: ast.Call, written: ast.AST) -> str:
    """That nobody chose the mode, where it is so."""
    return ", its default" if written is made else ""


def hint_for(script: Script, made: ast.Call, written: ast.AST, kind: str) -> str:
    """What to write."""
    mode = WANTED[kind]
    if written is made:
        return f'Say what is better: give the schedule at {script.at(made)} `mode="{mode}"`.'
    return f'Write `"{mode}"` for {script.quote(written)} at {script.at(written)}.'
