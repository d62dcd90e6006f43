"""Which of the free devices one set is made of: GPUs of one model near each other, cores near them, large holes whole.

Pure and deterministic; how many and for whom is decided elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from grader.run.devices.hardware import Core, Gpu

_MOST_SETS = 20_000
"""Up to here every set is looked at (8 of 16 GPUs are 12,870); beyond, neighbours by index only."""
_SAME_NODE, _OTHER_NODE = 4, 6
"""Steps between two GPUs of which no path is known, as PCIe counts them: within a memory node, across sockets."""


def nearest_gpus(free: Sequence[Gpu], num: int) -> tuple[Gpu, ...]:
    """The `num` free GPUs that are nearest to each other among those of one model, by index.

    A set of several models is as slow as its slowest, so one is made only where no model has enough. Among equally near
    sets: the one that leaves the fewest free GPUs on the memory nodes it takes from (so that other
    nodes stay whole for wider sets), then the one in the smallest span of indices, then the lowest indices.

    Raises:
        ValueError: fewer than `num` are free.
    """
    if num > len(free):
        raise ValueError(f"{num} GPUs wanted, {len(free)} free")
    # For neighbours to be of one model where every set is too many to look at.
    gpus = sorted(free, key=lambda gpu: (gpu.name, gpu.index))
    if num == 0 or num == len(gpus):
        return _by_index(gpus) if num else ()
    on_node = Counter(gpu.numa_node for gpu in gpus)
    steps = _steps(gpus)

    def cost(chosen: tuple[int, ...]) -> tuple[int, int, int, int, list[int]]:
        taken = Counter(gpus[i].numa_node for i in chosen)
        indices = sorted(gpus[i].index for i in chosen)
        return (
            len({gpus[i].name for i in chosen}),
            sum(steps[pair] for pair in combinations(chosen, 2)),
            sum(on_node[node] - count for node, count in taken.items()),
            indices[-1] - indices[0],
            indices,
        )

    places = range(len(gpus))
    if math.comb(len(gpus), num) <= _MOST_SETS:
        best = min(combinations(places, num), key=cost)
    else:
        best = min((tuple(range(i, i + num)) for i in range(len(gpus) - num + 1)), key=cost)
    return _by_index(gpus[i] for i in best)


def _by_index(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    return tuple(sorted(gpus, key=lambda gpu: gpu.index))


def _steps(gpus: Sequence[Gpu]) -> dict[tuple[int, int], int]:
    known = [dict(gpu.distances) for gpu in gpus]
    steps = {}
    for (i, a), (j, b) in combinations(enumerate(gpus), 2):
        guess = _SAME_NODE if a.numa_node == b.numa_node else _OTHER_NODE
        steps[i, j] = known[i].get(b.uuid, known[j].get(a.uuid, guess))
    return steps


def nearest_cores(free: Sequence[Core], num: int, gpus: Sequence[Gpu] = ()) -> tuple[Core, ...]:
    """The `num` free cores to run beside these GPUs: on their memory nodes, on as few nodes as can be.

    Without GPUs, the node is preferred on which the fewest stay free. Lowest CPUs first within a node.

    Raises:
        ValueError: fewer than `num` are free.
    """
    if num > len(free):
        raise ValueError(f"{num} cores wanted, {len(free)} free")
    wanted = {gpu.numa_node for gpu in gpus} - {None}
    on_node: dict[int | None, list[Core]] = {}
    for core in sorted(free, key=lambda core: core.cpus):
        on_node.setdefault(core.numa_node, []).append(core)

    def order(node: int | None) -> tuple[bool, bool, int, tuple[int, ...]]:
        size = len(on_node[node])
        # A node that holds them all, and just so; else the largest ones, so that few nodes are needed.
        return (node not in wanted, size < num, size if size >= num else -size, on_node[node][0].cpus)

    cores = [core for node in sorted(on_node, key=order) for core in on_node[node]]
    return tuple(sorted(cores[:num], key=lambda core: core.cpus))
