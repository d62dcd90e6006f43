"""What nodes tell about ranks that stand still, put together: a deadlock only where no node's ranks can help another's.

The coordinator is real and so are its pipes; what the nodes say is written down, since a standstill with busy
processors on two hosts needs two hosts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from grader.run.container_connection import ContainerConnection
from grader.run.engine.attached_connection import AttachedConnection
from grader.run.engine.node_coordinator import NodeCoordinator


class _Node(ContainerConnection):
    """A node whose supervisor has said all that it will say; keeps what it is told."""

    def __init__(self, name: str, *said: dict[str, Any]) -> None:
        super().__init__(name)
        self._reader, writer = os.pipe()
        with os.fdopen(writer, "wb") as file:
            file.write(b"".join(json.dumps(one).encode() + b"\n" for one in said))
        self.told: list[dict[str, Any]] = []

    def fileno(self) -> int:
        return self._reader

    def _write(self, data: bytes, limit_s: float) -> None:
        self.told.append(json.loads(data))

    def _read(self, left_s: float) -> bool:
        chunk = os.read(self._reader, 1 << 16)
        if not chunk:
            raise EOFError
        self._take_output(chunk)
        return True

    def close(self) -> None:
        os.close(self._reader)


def _standing(rank: int, name: str, *, awake: bool = True) -> dict[str, Any]:
    """A rank that has stood in its group's fourth collective for a while."""
    first = [4, name, 8, [["train.py", 12, "main"]], False]
    group = {
        "group": "nccl:0",
        "ranks": [0, 1],
        "enqueued": 4,
        "first": first,
        "recent": [first[:3]],
        "counts": {name: 4},
    }
    return {
        "event": "standing",
        "stood_s": 5.0,
        "silent_s": 15.0,
        "where": f"rank {rank} on node {rank} waits at train.py:20 (all_reduce)",
        "awake": [rank] if awake else [],
        "records": {str(rank): [group]},
    }


@pytest.fixture
def nodes() -> Iterator[list[_Node]]:
    made: list[_Node] = []
    yield made
    for node in made:
        node.close()


def _run(nodes: list[_Node], *standing: dict[str, Any]) -> NodeCoordinator:
    nodes += [_Node(f"node{i}", said, {"event": "ended"}) for i, said in enumerate(standing)]
    coordinator = NodeCoordinator(cast("list[AttachedConnection]", nodes), 1)
    assert coordinator.run([{}, {}], time.monotonic() + 10, lambda _sign: None)
    return coordinator


def test_ranks_of_two_nodes_in_different_collectives_are_a_deadlock_that_names_both(
    nodes: list[_Node],
) -> None:
    coordinator = _run(nodes, _standing(0, "all_reduce"), _standing(1, "broadcast"))
    assert coordinator.ending is not None
    ending, reason = coordinator.ending
    assert ending == "deadlocked"
    assert reason.endswith(
        "Rank 0 on node 0 is in its 4th all_reduce of 8 elements, called at train.py:12, rank 1 on node 1 is in its "
        "4th broadcast of 8 elements, called at train.py:12."
    )


def test_the_same_collective_on_both_nodes_may_be_queued_behind_long_kernels(nodes: list[_Node]) -> None:
    assert _run(nodes, _standing(0, "all_reduce"), _standing(1, "all_reduce")).ending is None


def test_ranks_that_the_kernel_saw_asleep_need_no_records(nodes: list[_Node]) -> None:
    coordinator = _run(nodes, *(_standing(rank, "all_reduce", awake=False) for rank in (0, 1)))
    assert coordinator.ending is not None
