"""Cosines that are over before training is, and climb again, as findings of OPT006."""

from __future__ import annotations

import ast

from grader.checks.phrases import at, count, place
from grader.checks.rule import Hit
from grader.checks.run.optimisation.schedule_ends import Bounce
from grader.checks.source.causes import lengths_of, lines, stands_at
from grader.checks.source.optimisation.schedules import steps_of
from grader.checks.source.optimisation.warm_ups import batches_of_epoch
from grader.checks.source.script import Script
from grader.model.call_site import Site

_NEAR = 0.02


def bounce_hit(script: Script, up: Bounce, per_epoch: int) -> Hit:
    """What such a cosine did, and how long it should be; `per_epoch`: optimizer steps of an epoch, 0 unknown."""
    length = up.event.fields.get("length")
    made, given = _made(script, up.event.site)
    stepped = [*steps_of(script, made)] if made is not None else []
    needed, in_epochs, warm = up.length, False, False
    if per_epoch > 1 and isinstance(length, int):
        whole = up.length + up.begin
        alone = abs(up.length - length * per_epoch) <= _NEAR * up.length
        # A warm-up before it may be as many steps long as it was to be epochs.
        warm = not alone and up.begin > 0 and abs(whole - (length + up.begin) * per_epoch) <= _NEAR * whole
        in_epochs = alone or warm
        needed = length * per_epoch if warm else needed
    how = f"climbed {up.climbs} times again" if up.climbs > 1 else "climbed again"
    says = (
        f"{at(up.event.site)} makes a cosine that is at its bottom after {length:,} steps, but it was given more: the "
        f"rate fell from {up.peak:.3g} to {up.bottom:.3g}, {how}, and training ended at {up.end:.3g}. "
    )
    hint = f"Make the cosine as long as it is stepped: `T_max` is to be {needed:,} here."
    if in_epochs:
        by = f"{script.at(stepped[0])} steps" if stepped else "the script steps"
        says += f"{count(length or 0, 'epoch')} would be {needed:,} steps: {by} it once per batch. "
        if made is not None and given is not None:
            batches = batches_of_epoch(script, made)
            hint += f" Counted in batches, that is `T_max={_times(given, batches)}`."
            hint += (
                f" The {up.begin:,} of the warm-up are epochs as well: times `{batches}`, too."
                if warm
                else ""
            )
            hint += " Or step the schedule once per epoch, behind the loop over batches." if warm else ""
    if up.climbs > 1 and not warm:
        hint += " Where the rate is to rise again on purpose, `CosineAnnealingWarmRestarts` says so."
    return Hit(
        message=f"{says}The last steps should be the smallest ones.",
        hint=hint,
        where=tuple(
            dict.fromkeys(
                (
                    *place(up.event.site),
                    *lines(script, lengths_of(script, up.event.site)),
                    *lines(script, stepped if in_epochs else ()),
                )
            )
        ),
        details={"length": length, "needed": needed, "end": up.end, "peak": up.peak, "climbs": up.climbs},
    )


def _made(script: Script, site: Site | None) -> tuple[ast.Call | None, ast.expr | None]:
    """The call that made the schedule, and what it is given as its length."""
    calls = (c for _, c in script.calls_under("torch.optim.lr_scheduler.") if stands_at(script, c, site))
    found = [(c, length) for c in calls if (length := script.argument(c, "T_max")) is not None]
    return found[0] if len(found) == 1 and isinstance(found[0][1], ast.expr) else (None, None)


def _times(length: ast.expr, batches: str) -> str:
    written = ast.unparse(length)
    return (
        f"({written}) * {batches}" if isinstance(length, ast.BinOp | ast.IfExp) else f"{written} * {batches}"
    )
