"""Which loaders of the ranks are one and the same in the script: those that one line builds.

A loader that is built anew for each epoch is the same one; loaders that a line keeps side by side are several. Ranks
may also build theirs on different lines, which shows where no line builds one on all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from grader.checks.run.data.epoch_shards import Shard


def by_loader(per_rank: Mapping[int, Sequence[Shard]]) -> list[Mapping[int, Sequence[Shard]]]:
    """Split each rank's shards of one data set by the script's loaders."""
    groups: dict[tuple[str, int, int], dict[int, list[Shard]]] = defaultdict(lambda: defaultdict(list))
    for rank, shards in per_rank.items():
        beside = _side_by_side(shards)
        for shard in shards:
            groups[*_line(shard), beside.get(shard.loader.id, 0) if shard.loader else 0][rank].append(shard)
    everywhere = any(len(group) == len(per_rank) for group in groups.values())
    return list(groups.values()) if everywhere else [per_rank]


def _side_by_side(shards: Sequence[Shard]) -> dict[int, int]:
    """Id of a loader → its number among those of its line, where one is gone through again after another one."""
    ids: dict[tuple[str, int], list[int]] = defaultdict(list)
    for shard in shards:
        if shard.loader is not None:
            ids[_line(shard)].append(shard.loader.id)
    found: dict[int, int] = {}
    for used in ids.values():
        changes = sum(a != b for a, b in pairwise(used))
        if changes >= len(set(used)):
            found |= {loader: number for number, loader in enumerate(dict.fromkeys(used))}
    return found


def _line(shard: Shard) -> tuple[str, int]:
    site = shard.loader.site if shard.loader else None
    return (site.path, site.line) if site else ("", 0)
