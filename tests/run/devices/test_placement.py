"""Sets are made of neighbours: GPUs by their links, memory nodes and numbers, cores beside their GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.run.devices.hardware import Core, Gpu, cpu_list, parse_cpu_list
from grader.run.devices.placement import nearest_cores, nearest_gpus


def gpus(nodes: str) -> list[Gpu]:
    """One GPU per letter: a digit is its memory node, a dash nothing known, a dot one in use."""
    return [
        Gpu(f"GPU-{i}", i, numa_node=None if node == "-" else int(node))
        for i, node in enumerate(nodes)
        if node != "."
    ]


def linked(some: list[Gpu], pairs: Iterable[tuple[int, int]]) -> list[Gpu]:
    """NVLink between these pairs, sockets between all others."""
    steps = {(a.index, b.index): 6 for a, b in combinations(some, 2)} | dict.fromkeys(pairs, 0)
    return [
        replace(
            a,
            distances=tuple(
                (b.uuid, steps[min(a.index, b.index), max(a.index, b.index)]) for b in some if b is not a
            ),
        )
        for a in some
    ]


def indices(some: Iterable[Gpu]) -> list[int]:
    return [gpu.index for gpu in some]


@pytest.mark.parametrize(
    ("nodes", "num", "expected"),
    [
        ("00001111", 2, [0, 1]),
        ("00001111", 4, [0, 1, 2, 3]),
        ("0...1111", 4, [4, 5, 6, 7]),  # one node, though lower numbers are free on the other
        ("..001111", 2, [2, 3]),  # the broken node first: the whole one stays for somebody wide
        ("..0.1111", 1, [2]),
        ("--------", 4, [0, 1, 2, 3]),
        ("-..-.--.", 2, [5, 6]),  # nothing known: side by side
        ("0101", 2, [0, 2]),
        ("01", 2, [0, 1]),
        ("0", 0, []),
    ],
)
def test_gpus_of_one_memory_node_side_by_side(nodes: str, num: int, expected: list[int]) -> None:
    assert indices(nearest_gpus(gpus(nodes), num)) == expected


def test_links_count_more_than_numbers_and_nodes() -> None:
    some = linked(gpus("0011"), [(0, 3), (1, 2)])
    assert indices(nearest_gpus(some, 2)) == [1, 2]
    assert indices(nearest_gpus([gpu for gpu in some if gpu.index != 2], 2)) == [0, 3]


def test_many_gpus_are_placed_quickly_too() -> None:
    some = [Gpu(f"GPU-{i}", i, numa_node=i // 16) for i in range(64)]
    chosen = nearest_gpus(some[7:], 16)
    assert len({gpu.numa_node for gpu in chosen}) == 1


def test_more_than_are_free_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="3 GPUs wanted, 2 free"):
        nearest_gpus(gpus("00"), 3)
    with pytest.raises(ValueError, match="2 cores wanted, 1 free"):
        nearest_cores([Core((0,), 0)], 2)


def test_cores_are_taken_beside_their_gpus() -> None:
    cores = [Core((i, i + 8), i // 4) for i in range(8)]
    assert [core.cpus[0] for core in nearest_cores(cores, 2, gpus("-1")[1:])] == [4, 5]
    assert [core.cpus[0] for core in nearest_cores(cores, 2)] == [0, 1]
    # The broken node first here, too.
    assert [core.cpus[0] for core in nearest_cores(cores[2:], 2)] == [2, 3]
    # More than one node has: the node beside the GPU whole, the rest from the other.
    assert [core.cpus[0] for core in nearest_cores(cores, 6, gpus("1"))] == [0, 1, 4, 5, 6, 7]


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_read_as_they_are_written(cpus: set[int]) -> None:
    assert parse_cpu_list(cpu_list(sorted(cpus))) == tuple(sorted(cpus))


def test_lists_of_cpus_as_the_kernel_writes_them() -> None:
    assert parse_cpu_list("0-2,64-66\n") == (0, 1, 2, 64, 65, 66)
    assert cpu_list([5, 0, 2, 1]) == "0-2,5"
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpu_list("all")
