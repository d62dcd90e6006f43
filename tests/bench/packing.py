"""M8: how tightly the allocator packs 8-GPU hosts, against what no allocator could beat, and how long wide ones wait.

Simulated time, the real allocator. It knows wall limits only; attempts take between a third and nine tenths of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.bench.figures import Figure
from tests.simulated_hosts import Arrival, Placed, simulate, simulated_host

_GPUS = 8
_WIDTHS = (1, 2, 4, 8)
_BAR = 1.1
_MEAN_S = 185.0
"""Of the durations drawn below."""
_ATTEMPTS_PER_HOST = 150
"""An evening before a deadline: about five hours of work for each host."""


def _arrivals(seed: int, num: int, shares: Sequence[int], every_s: float) -> list[Arrival]:
    """Attempts of half a minute to a quarter of an hour; all at once, or `every_s` seconds on average."""
    draw = random.Random(seed)
    arrivals, at_s = [], 0.0
    for _ in range(num):
        num_gpus = draw.choices(_WIDTHS, shares)[0]
        seconds = min(max(draw.lognormvariate(5.0, 0.7), 30.0), 900.0)
        wall_s = seconds * draw.uniform(1.1, 3.0)
        arrivals.append(Arrival(at_s, num_gpus, 2 * num_gpus, wall_s, seconds))
        at_s += draw.expovariate(1 / every_s) if every_s else 0.0
    return arrivals


def lower_bound_s(arrivals: Sequence[Arrival], num_hosts: int) -> float:
    """When even a perfect allocator that knew all durations could not be done before.

    The largest of: each attempt by itself; all work that comes after a moment, spread evenly over all GPUs from then
    on; and the same for attempts of which a host holds but few at a time (one of 8, two of 4 or more, …).
    """
    bound = max(one.at_s + one.seconds for one in arrivals)
    for width in _WIDTHS:
        wide = sorted((one for one in arrivals if one.num_gpus >= width), key=lambda one: -one.at_s)
        work = 0.0
        for one in wide:
            # Of those wider than `width`, each takes the place of several.
            work += one.seconds * (one.num_gpus // width)
            bound = max(bound, one.at_s + work / (num_hosts * (_GPUS // width)))
    return bound


def _longest_wait_s(placed: Sequence[Placed]) -> float:
    return max(one.start_s - one.arrival.at_s for one in placed if one.arrival.num_gpus == _GPUS)


def measure_packing(runs: int) -> Iterator[Figure]:
    """Several seeds each: makespan over its bound; longest wait of 8-GPU ones, and that over it in strict order."""
    seeds = max(3, runs // 4)
    # Shares of 1-, 2-, 4- and 8-GPU attempts: a course's own mix, and one in which wide ones do most of the work.
    for mix, shares in (("mostly narrow", (4, 3, 2, 1)), ("mostly wide", (1, 1, 1, 1))):
        mean_s = _MEAN_S * sum(map(lambda w, s: w * s, _WIDTHS, shares)) / sum(shares) / _GPUS
        for num_hosts in (1, 4):
            for how, load in (("at once", 0.0), ("in a rush", 1.2)):
                every_s = mean_s / num_hosts / load if load else 0.0
                ratios, wide_s, overtaken = [], [], []
                for seed in range(seeds):
                    arrivals = _arrivals(seed, _ATTEMPTS_PER_HOST * num_hosts, shares, every_s)
                    hosts = [simulated_host(f"{h}") for h in range(num_hosts)]
                    placed = simulate(hosts, arrivals)
                    ratios.append(max(one.end_s for one in placed) / lower_bound_s(arrivals, num_hosts))
                    wide_s.append(_longest_wait_s(placed))
                    overtaken.append(
                        wide_s[-1] / _longest_wait_s(simulate(hosts, arrivals, overtaking=False))
                    )
                where = f"{num_hosts} host{'s' if num_hosts > 1 else ''}, {mix}, {how}"
                yield Figure.of("M8", f"makespan / bound: {where}", "ratio", _BAR, ratios)
                yield Figure.of("M8", f"longest wait of 8-GPU ones: {where}", "s", None, wide_s)
                yield Figure.of("M8", f"… / in strict order: {where}", "ratio", 1.0, overtaken)
