"""How ranks came to their scripts' end: with their group taken down, and when, and with nothing left but to leave."""

from __future__ import annotations

from grader.model.trace import Group, RankTrace


def has_destroyed(rank: RankTrace) -> bool:
    """Whether the rank took its process group down, and formed no other one since."""
    if any(e.fields.get("group_destroyed") is True for e in rank.events("end")):
        return True
    operations = [g.op for g in rank.groups if g.op in ("init", "destroy")]
    return bool(operations) and operations[-1] == "destroy"


def trained_without_group(rank: RankTrace) -> tuple[Group, int] | None:
    """Where a rank took its last group down, and how many steps with an average of DDP's it took after that."""
    last = next((g for g in reversed(rank.groups) if g.op in ("init", "destroy")), None)
    if last is None or last.op != "destroy":
        return None
    after = sum(step.synced is True and step.t > last.t for step in rank.steps)
    return (last, after) if after else None


def only_left(rank: RankTrace) -> bool:
    """Whether the rank had taken its group down, and no exception but that of an exit ended it."""
    return (
        rank.ended
        and has_destroyed(rank)
        and all(e.fields.get("type") == "SystemExit" for e in rank.events("exception"))
    )
