"""Wrapped models whose parameters are no longer those that DDP was given, told as a finding."""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, listed, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.replica_comparison import compare_gradients
from grader.checks.source.gradient_switches import switched_on
from grader.model.run import Ending
from grader.model.trace import RankTrace

_WRAP_AGAIN = (
    "Wrap the model anew right after its parameters are switched on, and train through the new wrapper: "
    "`model = DistributedDataParallel(net)`."
)


def exchange_stopped(evidence: Evidence) -> bool:
    """Whether DDP's exchange came to nothing: ranks wait in it for others, or step with gradients of their own."""
    waiting = (r.waiting.operation for r in evidence.record.ranks if r.waiting is not None)
    if evidence.record.ending is Ending.DEADLOCKED and any(one.startswith("DDP ") for one in waiting):
        return True
    return compare_gradients(evidence.trace).difference is not None


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
        hint=hits[0].hint if hits else _WRAP_AGAIN if thawed else otherwise,
        where=tuple(dict.fromkeys((*lines, *place(site)))),
        ranks=tuple(r.rank for r in changed),
        details={"added": added, "thawed": thawed, "frozen": frozen, "removed": removed},
    )
