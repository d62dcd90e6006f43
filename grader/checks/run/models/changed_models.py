"""Wrapped models whose parameters are no longer those that DDP was given, told as a finding or as a cause of one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, listed, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.models.replica_comparison import compare_gradients
from grader.checks.source.causes import CauseInText
from grader.checks.source.models.changing_models import made_later, switched_on
from grader.checks.source.script import Script
from grader.model.run import Ending
from grader.model.trace import RankTrace, Wrap


def exchange_stopped(evidence: Evidence) -> bool:
    """Whether DDP's exchange came to nothing: ranks wait in it for others, or step with gradients of their own."""
    waiting = (r.waiting.operation for r in evidence.record.ranks if r.waiting is not None)
    if evidence.record.ending is Ending.DEADLOCKED and any(one.startswith("DDP ") for one in waiting):
        return True
    return compare_gradients(evidence.trace).difference is not None


def never_averaged(script: Script, rank: RankTrace, names: Sequence[str]) -> CauseInText | None:
    """Why gradients of these parameters differ, where DDP does not know them: they came, or were unfrozen, later."""
    event = next(iter(rank.events("changed")), None)
    told = {} if event is None else event.fields
    thawed = [n for n in names if n in (told.get("thawed") or ())]
    added = [n for n in names if n in (told.get("added") or ()) and n not in thawed]
    if not (thawed or added):
        return None
    wrap = next((w for w in rank.wraps if w.id == told.get("wrap")), rank.wraps[0])
    on = switched_on(script) if thawed else []
    line = at(wrap.site, "DDP")
    put = made_later(script, added, script.training.wraps)
    which = f", {script.quote(put[0])} ({script.at(put[0])})," if put else ""
    return CauseInText(
        (*on, *put),
        f"{line} wrapped the model before it was as it is now: {'; '.join(_unknown_to_ddp(added, thawed))}.",
        _wrap_again(script, on, wrap)
        if thawed
        else f"Change the model first{which} and wrap it last, at {line}.",
    )


def _unknown_to_ddp(added: Sequence[str], thawed: Sequence[str]) -> list[str]:
    parts = []
    if added:
        parts.append(
            f"{listed([f'`{n}`' for n in added], 3)} came later, so DDP never averages their gradients"
        )
    if thawed:
        parts.append(
            f"{listed([f'`{n}`' for n in thawed], 3)} required no gradient when it was wrapped, and "
            f"{'requires' if len(thawed) == 1 else 'require'} one now, which DDP never averages"
        )
    return parts


def _wrap_again(script: Script, on: Sequence[ast.AST], wrap: Wrap) -> str:
    switch = f"{script.at(on[0])} switches them" if on else "its parameters are switched"
    return (
        f"Switch gradients on before {at(wrap.site, 'DDP')} wraps the model; or wrap the network anew right after "
        f"{switch} on, and train through the new wrapper: `model = DistributedDataParallel(net)`."
    )


def changed_models(changed: list[RankTrace], evidence: Evidence, hits: list[Hit], otherwise: str) -> Hit:
    """What came of it on these ranks.

    Args:
        changed: ranks that tell of a change.
        evidence: all evidence of the run.
        hits: what the text shows of such changes; otherwise: what to write where it shows none.
    """
    event = changed[0].events("changed")[0]
    wrap = next((w for w in changed[0].wraps if w.id == event.fields.get("wrap")), changed[0].wraps[0])
    thawed = [str(n) for n in event.fields.get("thawed") or ()]
    added = [str(n) for n in event.fields.get("added") or () if str(n) not in thawed]
    frozen = [str(n) for n in event.fields.get("frozen") or ()]
    removed = event.fields.get("removed")
    removed = removed if isinstance(removed, int) else 0
    parts = _unknown_to_ddp(added, thawed)
    if frozen:
        parts.append(
            f"{listed([f'`{n}`' for n in frozen], 3)} no longer required a gradient, though DDP waits for it"
        )
    if removed:
        parts.append(f"{count(removed, 'tensor')} that DDP holds {'was' if removed == 1 else 'were'} gone")
    lines = [p for h in hits for p in h.where]
    on = [] if hits or not thawed else switched_on(evidence.script)
    lines += [evidence.script.location(n) for n in on]
    site = first_known([wrap.site])
    return Hit(
        message=f"{ranks(r.rank for r in changed)} trained a `{wrap.module}` that was changed after "
        f"{at(wrap.site, 'DDP')} had wrapped it: {'; '.join(parts)}.",
        hint=hits[0].hint if hits else _wrap_again(evidence.script, on, wrap) if thawed else otherwise,
        where=tuple(dict.fromkeys((*lines, *place(site)))),
        ranks=tuple(r.rank for r in changed),
        details={"added": added, "thawed": thawed, "frozen": frozen, "removed": removed},
    )
