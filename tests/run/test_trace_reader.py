"""Reading what the ranks told: good traces come back whole, bad ones as problems, impossible ones as suspicions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grader.model.call_site import Site
from grader.model.trace import RankTrace
from grader.run import trace_reader
from grader.run.trace_reader import read_trace

START = {
    "e": "start",
    "t": 0.1,
    "torch": "2.9",
    "python": "3.11",
    "rank": 0,
    "local_rank": 0,
    "world_size": 1,
    "pid": 7,
}
START |= {"seed": 1, "probe": 1}
LOADER = {
    "e": "loader",
    "t": 0.2,
    "id": 0,
    "site": ["train.py", 4, "main"],
    "dataset": "FashionMNIST",
    "root": 0,
}
LOADER |= {
    "root_size": 100,
    "size": 100,
    "split": "train",
    "sampler": "DistributedSampler",
    "num_replicas": 2,
}
LOADER |= {
    "sampler_rank": 0,
    "sampler_seed": 0,
    "shuffle": True,
    "batch_size": 2,
    "drop_last": False,
    "num_workers": 0,
}
LOADER |= {"iterable": False, "resolvable": True}
PASS = {"e": "pass", "t": 0.3, "loader": 0, "n": 0, "sampler_epoch": 5, "site": None}
PASS_END = {"e": "pass_end", "t": 5.0, "loader": 0, "pass": 0, "num_batches": 2, "exhausted": False}
END = {"e": "end", "t": 6.0, "steps": 2}


def batch(n: int, t: float) -> dict[str, Any]:
    return {
        "e": "batch",
        "t": t,
        "loader": 0,
        "pass": 0,
        "n": n,
        "size": 2,
        "indices": [n, n + 1],
        "wait_s": 0.01,
    }


def step(n: int, t: float, **more: Any) -> dict[str, Any]:
    fields = {
        "e": "step",
        "t": t,
        "n": n,
        "optimizer": 0,
        "kind": "SGD",
        "lr": [0.1],
        "samples": 2,
        "data_s": 0.0,
    }
    fields |= {"compute_s": 0.1, "optimizer_s": None, "loss": 0.5, "synced": True}
    return fields | more


GOOD = [
    START,
    LOADER,
    PASS,
    batch(0, 0.4),
    step(0, 0.5),
    batch(1, 0.6),
    step(1, 0.7, grads=[1.5, None]),
    PASS_END,
    END,
]


def stamped(events: list[dict[str, Any]], late_s: float = 0.001) -> bytes:
    return b"".join(b"%.6f\t%s\n" % (event["t"] + late_s, json.dumps(event).encode()) for event in events)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], RankTrace]:
    def from_bytes(content: bytes) -> RankTrace:
        path = tmp_path / "rank0.trace"
        path.write_bytes(content)
        return read_trace([path]).ranks[0]

    return from_bytes


def test_a_whole_trace(read: Callable[[bytes], RankTrace]) -> None:
    trace = read(stamped(GOOD))
    assert trace.problems == trace.suspicions == ()
    assert trace.ended
    assert trace.num_lines == len(GOOD)
    assert trace.last_t == pytest.approx(6.001)
    assert trace.start is not None
    assert trace.start.pid == 7
    assert trace.loaders[0].site == Site("train.py", 4, "main")
    assert [(b.indices, b.step) for b in trace.batches] == [((0, 1), 0), ((1, 2), 1)]
    assert (trace.passes[0].sampler_epoch, trace.passes[0].ended_t, trace.passes[0].exhausted) == (
        5,
        5.0,
        False,
    )
    assert trace.steps[1].grads == (1.5, None)
    assert trace.steps[0].grads is None
    assert trace.events("end")[0].fields == {"steps": 2}


def test_of_a_kind_that_is_rare_only_so_many_are_kept(
    read: Callable[[bytes], RankTrace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_reader, "MAX_OTHERS", 3)
    trace = read(stamped([*GOOD[:-1], *({"e": "random", "t": 5.5, "n": n} for n in range(9)), END]))
    assert len(trace.events("random")) == 3
    assert trace.problems == ("Of kind 'random' there are more events than are read. (6 times)",)
    assert trace.ended


def test_a_rank_that_told_nothing(tmp_path: Path) -> None:
    trace = read_trace([tmp_path / "rank0.trace", tmp_path / "rank1.trace"])
    assert trace.world_size == 2
    assert [rank.rank for rank in trace.ranks] == [0, 1]
    assert trace.ranks[1].problems == ("The rank left no trace at all.",)
    assert not trace.ranks[1].ended


def test_losses_that_are_no_numbers_are_kept(read: Callable[[bytes], RankTrace]) -> None:
    trace = read(stamped([START, step(0, 0.5, loss=float("nan")), step(1, 0.6, grads=[float("inf")])]))
    assert trace.steps[0].loss != trace.steps[0].loss
    assert trace.steps[1].grads == (float("inf"),)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{}", "A line has no time of receipt."),
        (b"1.0\tgarbage", "A line is no JSON."),
        (b"1.0\t" + b"[" * 100_000, "A line is no JSON."),
        (b'1.0\t{"e":"step","t":' + b"9" * 5000 + b"}", "A line is no JSON."),
        (b'1.0\t{"e":"\xff","t":1}', "A line is no JSON."),
        (b"1.0\t[1,2]", "A line is JSON, but no event."),
        (b'1.0\t{"t":1}', "An event has no kind."),
        (b'1.0\t{"e":"step","t":NaN}', "An event of kind 'step' has no time."),
        (b'1.0\t{"e":"step","t":true}', "An event of kind 'step' has no time."),
        (b'1.0\t{"e":"step","t":1e300}', "An event of kind 'step' has no time."),
        (b'1.0\t{"e":"wizard","t":1}', "An event is of a kind that nobody knows."),
        (b'1.0\t{"e":"params","t":1,"n":1e3,"names":[],"sums":[]}', "params n"),
        (b'1.0\t{"e":"params","t":1,"n":1,"names":[1],"sums":[]}', "params names"),
        (b'1.0\t{"e":"params","t":1,"n":1,"names":[],"sums":["1"]}', "params sums"),
        (b'1.0\t{"e":"params","t":1,"n":' + b"9" * 40 + b',"names":[],"sums":[]}', "params n"),
        (b'1.0\t{"e":"backward","t":1,"site":["/etc/passwd",1,"f"]}', "backward site"),
        (b'1.0\t{"e":"backward","t":1,"site":["../a.py",1,"f"]}', "backward site"),
        (b'1.0\t{"e":"backward","t":1,"loss":[[[[[[1]]]]]]}', "backward nesting"),
        (
            b'1.0\t{"e":"pass_end","t":1,"loader":4,"pass":0,"exhausted":true}',
            "A pass over a loader ended that was not under way.",
        ),
        (b"1.0\t" + b"x" * (2 << 20), "A line is longer than 1 MiB and was left out."),
    ],
)
def test_bad_lines_are_named_and_left_out(
    read: Callable[[bytes], RankTrace], line: bytes, problem: str
) -> None:
    if len(problem.split()) == 2:
        kind, name = problem.split()
        problem = f"An event of kind {kind!a} has a wrong or missing field {name!a}."
    trace = read(stamped(GOOD[:6]) + line + b"\n" + stamped(GOOD[6:]))
    assert trace.problems == (problem,)
    assert len(trace.steps) == 2
    assert trace.ended


def test_equal_problems_are_counted_and_different_ones_limited(read: Callable[[bytes], RankTrace]) -> None:
    lines = b"1.0\tx\n" * 1000 + b"".join(b'1.0\t{"e":"k%d","t":null}\n' % n for n in range(1000))
    problems = read(lines).problems
    assert problems[0] == "A line is no JSON. (1000 times)"
    assert len(problems) == 21


def test_hostile_text_is_made_safe(read: Callable[[bytes], RankTrace]) -> None:
    event = {"e": "exception", "t": 1, "message": "\x1b[31m\u202eevil\ud800\n", "frames": []}
    trace = read(stamped([START, event]))
    assert trace.others[0].fields["message"].isprintable()
    trace.others[0].fields["message"].encode("utf-8")


SUSPICIOUS = {
    "another rank": [START | {"rank": 1}, *GOOD[1:]],
    "twice": [START, *GOOD[:-1], START | {"t": 5.5, "pid": 8}, END],
    "not 'start'": [*GOOD[1:]],
    "ended twice": [*GOOD, END],
    "Step 5 was told where step 2": [*GOOD[:-2], step(5, 0.8), *GOOD[-2:]],
    "Step 0 was told where step 2": [*GOOD[:-2], step(0, 0.8), *GOOD[-2:]],
    "had been received before": [START, step(0, 60.0), step(1, 20.0), END | {"t": 61.0}],
}


@pytest.mark.parametrize("words", SUSPICIOUS)
def test_what_honest_code_cannot_tell(read: Callable[[bytes], RankTrace], words: str) -> None:
    suspicions = " ".join(read(stamped(SUSPICIOUS[words])).suspicions)
    known = {"another rank": "Rank 1 was named in the trace of rank 0", "twice": "started twice"}
    assert known.get(words, words) in suspicions


def test_events_from_the_future(read: Callable[[bytes], RankTrace]) -> None:
    early = [event | {"t": event["t"] + 1} for event in GOOD]
    (suspicion,) = read(stamped(early, late_s=-0.9)).suspicions
    assert "had been received at" in suspicion


def test_replayed_steps(read: Callable[[bytes], RankTrace]) -> None:
    steps = [step(n, 1.0 + 2 * n) for n in range(40)]
    lines = stamped([START]) + b"".join(
        b"%.6f\t%s\n" % (80 + n / 100, json.dumps(event).encode()) for n, event in enumerate(steps)
    )
    assert any("were received within" in sentence for sentence in read(lines).suspicions)


def test_more_than_a_pipe_can_hold(read: Callable[[bytes], RankTrace]) -> None:
    steps = [step(n, 1.0 + n / 10_000, kind="S" * 2000) for n in range(2500)]
    lines = stamped([START]) + b"".join(
        b"%.6f\t%s\n" % (9.0 + n / 500, json.dumps(e).encode()) for n, e in enumerate(steps)
    )
    assert any("more than can be on the way" in sentence for sentence in read(lines).suspicions)


def test_a_busy_supervisor_or_a_lossy_end_is_no_suspicion(read: Callable[[bytes], RankTrace]) -> None:
    steps = [step(n, 1.0 + n / 10) for n in range(100)]
    late = stamped([START]) + b"".join(
        b"%.6f\t%s\n" % (max(event["t"], 8.0) + n / 1e5, json.dumps(event).encode())
        for n, event in enumerate(steps)
    )
    trace = read(late[:-30])
    assert trace.suspicions == ()
    assert trace.problems == (
        "The trace ends in the middle of a line.",
        "The trace stops before the script's end was told.",
    )
    gap = read(stamped(GOOD[:4]) + b"0.5\t{broken\n" + stamped(GOOD[5:]))
    assert gap.suspicions == ()
    assert len(gap.steps) == 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(stamped(GOOD))))
def test_any_truncation(read: Callable[[bytes], RankTrace], cut: int) -> None:
    whole = stamped(GOOD)
    trace = read(whole[:cut])
    assert trace.suspicions == ()
    lines = whole[:cut].count(b"\n")
    assert lines <= trace.num_lines <= lines + 1
    assert trace.ended == (trace.num_lines == len(GOOD))
    assert trace.ended or trace.problems


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted(
    {name for event in GOOD for name in event} | {"names", "sums", "hashes", "op", "path", "out", "prefix"}
)
KINDS = [
    "start",
    "group",
    "collective",
    "wrap",
    "loader",
    "pass",
    "batch",
    "pass_end",
    "feed",
    "step",
    "params",
    "final",
]
KINDS += ["save", "file", "end", "exception", "evaluation"]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mutations=st.lists(
        st.tuples(st.integers(0, len(GOOD) - 1), st.sampled_from(FIELDS), JSONISH), max_size=6
    ),
    kinds=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.sampled_from(KINDS)), max_size=4),
    splices=st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=20)), max_size=6),
)
@example(mutations=[(3, "indices", [10**30])], kinds=[], splices=[])
def test_garbage_never_raises(
    read: Callable[[bytes], RankTrace],
    mutations: list[tuple[int, str, Any]],
    kinds: list[tuple[int, str]],
    splices: list[tuple[int, bytes]],
) -> None:
    events = [dict(event) for event in GOOD]
    for index, name, value in mutations:
        events[index][name] = value
    for index, kind in kinds:
        events[index]["e"] = kind
    content = b"".join(b"%.6f\t%s\n" % (n / 10, json.dumps(event).encode()) for n, event in enumerate(events))
    for position, junk in splices:
        content = content[:position] + junk + content[position:]
    trace = read(content)
    assert trace.num_lines <= content.count(b"\n") + 1
    for one in trace.steps:
        assert isinstance(one.n, int)
        assert all(isinstance(rate, float) for rate in one.lr)
    for one_batch in trace.batches:
        assert one_batch.indices is None or all(type(index) is int for index in one_batch.indices)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.permutations(range(len(GOOD))),
    cuts=st.lists(st.integers(1, 200), min_size=len(GOOD), max_size=len(GOOD)),
)
def test_interleaved_halves_of_lines(
    read: Callable[[bytes], RankTrace], order: list[int], cuts: list[int]
) -> None:
    lines = stamped(GOOD).splitlines(keepends=True)
    content = b"".join(lines[i][: cuts[i]] for i in order) + b"".join(lines[i][cuts[i] :] for i in order)
    trace = read(content)
    assert len(trace.steps) <= 2
    assert trace.problems or trace.suspicions or order == sorted(order)
