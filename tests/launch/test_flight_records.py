"""Ranks that wait with a busy processor, as NCCL's do, are told from ranks that compute, by torch's own records.

The spinning is real: a call into C that holds no interpreter lock, as `cudaStreamSynchronize` does. The collectives are
gloo's, whose records stand as NCCL's do while nobody answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.launch.endings.deadlock import Snapshot, Standstill, stands_still
from grader.launch.endings.flight_records import (
    FlightRecord,
    held_by,
    on_device,
    read_answer,
    read_groups,
    stuck,
    tell,
)
from grader.launch.endings.stacks import StackFrame, operation
from grader.model.run import Ending
from grader.probe.communication.flight_recorder import summary
from grader.probe.gradients import backward_passes
from tests.c_compiler import SHARED, compile_c
from tests.launch.conftest import Launch

RECORDED = Path(__file__).with_name("recorded")
SHORT = {"silence_s": 0.8, "stack_gap_s": 0.8, "wall_s": 300.0, "probe": True}
SPIN = """
#include <time.h>
void spin(double seconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) * 1e-9 < seconds);
}
"""
START = """
import ctypes, os, time, torch, torch.distributed as dist
spin = ctypes.CDLL({spin!r}).spin
spin.argtypes = [ctypes.c_double]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
other = dist.new_group([0, 1])
for _ in range(3):
    dist.all_reduce(torch.ones(4))
"""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first lines of a script that can spin."""
    folder = tmp_path_factory.mktemp("spin")
    (folder / "spin.c").write_text(SPIN)
    library = folder / "spin.so"
    compile_c(folder / "spin.c", to=library, options=("-O2", *SHARED))
    return START.format(spin=str(library))


def test_a_spinning_rank_and_one_that_never_comes_are_named_with_their_collectives(
    launch: Launch, start: str
) -> None:
    script = (
        start
        + "if rank == 0:\n    dist.all_reduce(torch.ones(8), async_op=True)\n    spin(1000)\n"
        + "dist.distributed_c10d._get_default_store().get('never')\n"
    )
    ran = launch(script, **SHORT)
    assert ran.record.ending is Ending.DEADLOCKED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    assert "rank 0 waits at train.py:12 (all_reduce), rank 1 waits at train.py:13 (store operation)" in (
        ran.record.ending_reason
    )
    assert ran.record.ending_reason.endswith(
        "Rank 0 is in its 4th all_reduce of 8 elements, called at train.py:11, rank 1 has made 3."
    )
    assert [rank.waiting.operation for rank in ran.record.ranks if rank.waiting] == [
        "all_reduce",
        "store operation",
    ]
    # What rank 0 waits for was begun a line before the one where it waits.
    assert [rank.waiting.site.line for rank in ran.record.ranks if rank.waiting and rank.waiting.site] == [
        11,
        13,
    ]


def test_what_a_thread_of_torchs_own_began_stands_in_the_function_that_went_backward(
    launch: Launch, start: str
) -> None:
    """As on a GPU: no line of Python lies beneath the call, and the stack shows where the script went on to."""
    script = start + (
        "import _thread\n"
        "def train():\n"
        "    torch.ones(1, requires_grad=True).sum().backward()\n"
        "    if rank == 0:\n"
        "        _thread.start_new_thread(dist.group.WORLD.allreduce, ([torch.ones(8)],))\n"
        "        spin(1000)\n"
        "train()\n"
        "dist.distributed_c10d._get_default_store().get('never')\n"
    )
    ran = launch(script, **SHORT)
    assert ran.record.ending is Ending.DEADLOCKED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    waiting = ran.record.ranks[0].waiting
    assert waiting is not None
    lines = script.splitlines()
    begun, called = (
        1 + lines.index("    torch.ones(1, requires_grad=True).sum().backward()"),
        1 + lines.index("train()"),
    )
    assert [(frame.line, frame.function) for frame in waiting.frames] == [
        (begun, "train"),
        (called, "<module>"),
    ]


def test_two_spinning_ranks_that_each_wait_for_the_other_are_a_deadlock(launch: Launch, start: str) -> None:
    script = (
        start + "dist.all_reduce(torch.ones(8), group=other if rank else None, async_op=True)\nspin(1000)\n"
    )
    ran = launch(script, **SHORT)
    assert ran.record.ending is Ending.DEADLOCKED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    assert [rank.waiting.operation for rank in ran.record.ranks if rank.waiting] == ["all_reduce"] * 2


# Silent for longer than the limits above, and then they go on.
HONEST = {
    "a long kernel on both": "spin(4)\ndist.barrier()\n",
    "a long kernel on one, the other sleeps for it": "spin(4 * rank)\ndist.barrier()\n",
    "a long kernel on one, the other spins for it": (
        "work = dist.all_reduce(torch.ones(8), async_op=True) if rank == 0 else None\nspin(4)\n"
        "work = work or dist.all_reduce(torch.ones(8), async_op=True)\nwork.wait()\n"
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_long_kernel_is_no_deadlock(launch: Launch, start: str, name: str) -> None:
    ran = launch(start + HONEST[name] + "print('went on')", **SHORT)
    assert ran.record.ending is Ending.COMPLETED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    assert [ran.out(0), ran.out(1)] == ["went on\n"] * 2


@pytest.mark.slow
def test_with_the_real_limits_a_silent_kernel_of_25_s_goes_on_and_a_deadlock_is_named(
    launch: Launch, start: str
) -> None:
    ran = launch(start + "spin(25)\ndist.barrier()\n", wall_s=60.0, probe=True)
    assert ran.record.ending is Ending.COMPLETED, ran.record.ending_reason
    script = (
        start + "dist.all_reduce(torch.ones(8), group=other if rank else None, async_op=True)\nspin(1000)\n"
    )
    ran = launch(script, wall_s=90.0, probe=True)
    assert ran.record.ending is Ending.DEADLOCKED, ran.record.ending_reason


# -- NCCL's dumps, as torch writes them -------------------------------------------------------------------------------


def _entry(number: int, name: str, elements: int, state: str, **more: Any) -> dict[str, Any]:
    """One entry of a dump of version 2.10, with the fields that torch gives it."""
    return {
        "frames": [
            {"name": "all_reduce", "filename": "/x/torch/distributed/distributed_c10d.py", "line": 4181},
            {"name": "main", "filename": "/x/submission/train.py", "line": 30},
        ],
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": 1795632186265174318 + number,
        "input_sizes": [[elements]],
        "input_dtypes": ["Float"],
        "output_sizes": [[elements]],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600000,
        "is_p2p": False,
    } | more


def _told(*entries: dict[str, Any]) -> FlightRecord:
    """Such a dump as it comes through the probe and over the wire."""
    dump = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": list(entries)}
    told = {"asked": 7, "groups": summary(dump, {"0": [0, 1]})}
    record = read_answer(json.dumps(told).encode(), 7)
    assert record is not None
    return record


DONE = [_entry(number, "all_reduce", 4, "completed") for number in (1, 2, 3)]
FOURTH = _entry(4, "all_reduce", 8, "scheduled")
MINE = _told(*DONE, FOURTH)


@pytest.mark.parametrize(
    ("theirs", "deadlock"),
    [
        (_told(*DONE, FOURTH), False),
        (_told(*DONE, _entry(4, "all_reduce", 2, "started")), True),
        (_told(*DONE, _entry(4, "_all_gather_base", 8, "scheduled")), True),
        (_told(*DONE, FOURTH, _entry(5, "broadcast", 1, "scheduled")), False),
        (_told(*DONE, _entry(4, "broadcast", 1, "completed"), _entry(5, "broadcast", 1, "scheduled")), True),
        (_told(*DONE), False),
        (_told(*DONE, _entry(4, "recv 1<-0", 8, "scheduled", is_p2p=True, collective_seq_id=3)), False),
        (None, False),
    ],
    ids=[
        "the same, queued behind a long kernel",
        "other sizes",
        "another collective",
        "the same, and one more behind it",
        "another one that is over on that rank",
        "nothing begun: it computes",
        "a receive that was asked for early",
        "no answer",
    ],
)
def test_what_nccls_records_prove(theirs: FlightRecord | None, deadlock: bool) -> None:
    look = _look(MINE, theirs, cpu_s=100.0)
    assert stands_still(look, _look(MINE, theirs, cpu_s=105.0), 5.0) is deadlock
    if theirs is not None:
        moved = _told(*DONE, _entry(4, "all_reduce", 8, "completed"), _entry(5, "all_reduce", 8, "scheduled"))
        assert not stands_still(look, _look(moved, theirs, cpu_s=105.0), 5.0)


def _look(*records: FlightRecord | None, cpu_s: float, line: str = "") -> Snapshot:
    frames = (StackFrame("/x/submission/train.py", 44, "main"),)
    return {
        rank: Standstill(line, frames, 10, cpu_s, working=False, last_moved_s=3.0, record=record)
        for rank, record in enumerate(records)
    }


@pytest.mark.parametrize(
    ("line", "library"),
    [
        ("running += loss.item()", None),
        ("acc = (logits.argmax(1) == y).sum().cpu()", None),
        ("total = float(loss)", None),
        ("print(loss)", StackFrame("/x/torch/_tensor_str.py", 150, "__init__")),
        ("torch.cuda.synchronize()", StackFrame("/x/torch/cuda/__init__.py", 1100, "synchronize")),
        ("scaler.step(optimizer)", StackFrame("/x/torch/amp/grad_scaler.py", 450, "_maybe_opt_step")),
        ("loss.backward()", StackFrame("/x/torch/autograd/graph.py", 825, "_engine_run_backward")),
        ("dist.barrier()", StackFrame("/x/torch/distributed/distributed_c10d.py", 5000, "barrier")),
    ],
)
def test_wherever_a_rank_waits_for_nccl_spinning_or_asleep_the_records_decide(
    tmp_path: Path, line: str, library: StackFrame | None
) -> None:
    (tmp_path / "train.py").write_text(line + "\n")
    frames = tuple(f for f in (library, StackFrame(str(tmp_path / "train.py"), 1, "main")) if f is not None)
    named = operation(frames, str(tmp_path))
    gone = {0: MINE, 1: _told(*DONE, _entry(4, "broadcast", 1, "scheduled"))}
    same = {0: MINE, 1: MINE}
    for records, deadlock in ((gone, True), (same, False)):
        for spent_s in (0.01, 5.0):
            before, after = (
                {
                    rank: Standstill(named, frames, 10, cpu_s, working=False, last_moved_s=3.0, record=record)
                    for rank, record in records.items()
                }
                for cpu_s in (100.0, 100.0 + spent_s)
            )
            assert stands_still(before, after, 5.0) is deadlock
    assert (held_by(0, gone), held_by(0, same)) == (MINE[0].first, None)


def test_a_dump_of_a_real_gpu_is_read() -> None:
    """Two ranks on an H200 under NCCL 2.28.9 and torch 2.11; rank 1 left out the fourth sum, and waits at a barrier."""
    dumps = [json.loads((RECORDED / f"nccl_of_an_h200_rank{rank}.json").read_text()) for rank in (0, 1)]
    records = dict(enumerate(_told(*dump["entries"]) for dump in dumps))
    assert stuck(0, records)
    assert tell(records, {0: "rank 0", 1: "rank 1"}) == (
        "Rank 0 is in its 4th all_reduce of 8 elements, rank 1 is in its 1st barrier of 1 element."
    )


def test_a_dump_of_nccls_second_implementation_is_read() -> None:
    """On an H100 under NCCL 2.30.7; rank 1 left out the fourth sum, and its barrier let it go on to its end."""
    dump = json.loads((RECORDED / "nccl2_of_an_h100_rank0.json").read_text())
    records = {0: _told(*dump["entries"])}
    assert stuck(0, records)
    assert on_device(records[0])
    assert tell(records, {0: "rank 0", 1: "rank 1"}) == (
        "Rank 0 is in its 4th all_reduce of 8 elements, rank 1 has ended."
    )


def test_what_torch_began_within_a_backward_pass_leads_to_the_line_of_that_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reducer's thread has no frames of Python, and the line where the script waits for its GPU began nothing."""
    monkeypatch.setattr(backward_passes, "last_site", ("train.py", 52, "main"))
    waits = _told(*DONE, _entry(4, "all_reduce", 165, "scheduled", frames=[]))
    (group,) = waits
    assert group.first is not None
    assert group.first.operation == "DDP gradient all-reduce"
    assert group.first.lines == (("train.py", 52, "main"),)
    assert "4th all_reduce of 165 elements, called at train.py:52" in tell(
        {0: waits, 1: _told(*DONE)}, {0: "rank 0", 1: "rank 1"}
    )


def test_a_rank_that_has_ended_never_comes() -> None:
    assert stands_still(_look(MINE, cpu_s=100.0), _look(MINE, cpu_s=105.0), 5.0)


def test_a_rank_that_has_ended_is_told_beside_those_that_wait() -> None:
    waits = _told(*DONE, _entry(4, "all_reduce", 8, "scheduled"))
    assert tell({0: waits}, {0: "rank 0", 1: "rank 1"}) == (
        "Rank 0 is in its 4th all_reduce of 8 elements, rank 1 has ended."
    )


def test_of_more_than_the_recorder_holds_the_number_is_told_instead_of_a_count() -> None:
    late = [_entry(number, "all_reduce", 4, "completed") for number in (5010, 5011)]
    waits = _told(*late, _entry(5012, "all_reduce", 4, "scheduled"))
    assert tell({0: waits, 1: _told(*late)}, {0: "rank 0", 1: "rank 1"}) == (
        "Rank 0 is in its 5,012th collective, all_reduce of 4 elements, rank 1 has made 5,011 collectives."
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[" * 5000,
        b'{"asked":7}',
        b'{"asked":7,"groups":7}',
        b'{"asked":7,"groups":[7]}',
        b'{"asked":8,"groups":[]}',
        b"\xff" * 100,
    ],
)
def test_other_bytes_are_no_answer(raw: bytes) -> None:
    assert read_answer(raw, 7) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enqueued", -1),
        ("enqueued", 1 << 60),
        ("enqueued", True),
        ("first", [1, "rm -rf\n", None, None]),
        ("first", [1]),
        ("recent", {"a": 1}),
        ("counts", []),
        ("ranks", ["0"]),
    ],
)
def test_a_group_that_no_recorder_tells_is_not_believed(field: str, value: Any) -> None:
    group = {"group": "nccl:0", "ranks": [], "enqueued": 1, "first": None, "recent": [], "counts": {}}
    assert read_groups([group])
    assert read_answer(json.dumps({"asked": 7, "groups": [group | {field: value}]}).encode(), 7) is None
