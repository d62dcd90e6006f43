"""Ranks that hold parts of one model count as one, must meet the same samples, and are compared with copies alone."""

from __future__ import annotations

from typing import Any

import pytest

from grader.checks.run.models.parallel_layout import Layout
from grader.model.grade import State


def in_parts(tell: Any, kind: str = "tensor", *, over: str = "dp", drawn: Any = None) -> Any:
    """Four ranks on a mesh of 2 × 2: `drawn` of each rank in an epoch; by default each dimension's own, as is right."""
    story = tell.Story(4, 96)
    story.group()
    for r in story.ranks:
        row, column = divmod(r.rank, 2)
        lines = {"dp": [column, column + 2], "tp": [2 * row, 2 * row + 1]}
        r.event("mesh", 6, dims=[["dp", lines["dp"]], ["tp", lines["tp"]]])
        r.event("parallel", 7, kind=kind, dims=[["tp", lines["tp"]]], stage=None)
    for epoch in range(2):
        shares = tell.strided(96, 2, epoch)
        by_dimension = {r: shares[r // 2 if over == "dp" else r % 2] for r in range(4)}
        story.epoch(drawn or by_dimension, sampler_epoch=epoch, num_replicas=2)
    return story


def test_the_data_are_divided_among_models(tell: Any) -> None:
    story = in_parts(tell)
    assert story.evidence().ledger.num_shares == 2
    for code in ("DATA001", "DATA003", "DATA004", "DATA011", "DIST004"):
        seen = story.observation(code)
        assert seen.state is State.VERIFIED, (code, seen.reason)


def test_the_report_shows_what_every_rank_drew(tell: Any) -> None:
    (first, *_) = in_parts(tell).evidence().ledger.coverage()
    assert [len(drawn) for drawn in first] == [48, 48, 48, 48]
    assert first[0] == first[1] != first[2]


@pytest.mark.parametrize("kind", ["tensor", "pipeline", "context"])
def test_ranks_of_one_model_that_draw_different_batches(tell: Any, kind: str) -> None:
    seen = in_parts(tell, kind, drawn=tell.strided(96, 4)).observation("DATA011")
    (hit,) = seen.hits
    assert hit.ranks == (0, 1)
    assert (
        "Ranks 0 and 1 hold parts of one model (dimension `tp`) and trained on different batches in step 0"
        in hit.message
    )


def test_the_wrong_dimension(tell: Any) -> None:
    story = in_parts(tell, over="tp")
    assert story.observation("DATA011").state is State.CONTRADICTED
    # Their copies draw the same.
    assert story.observation("DATA001").state is State.VERIFIED
    assert story.observation("DATA003").state is State.CONTRADICTED


def test_copies_that_draw_the_same(tell: Any) -> None:
    story = in_parts(tell, drawn=dict.fromkeys(range(4), tell.strided(96, 1)[0]))
    assert story.observation("DATA011").state is State.VERIFIED
    seen = story.observation("DATA001")
    assert seen.state is State.CONTRADICTED
    assert "2 copies" in seen.hits[0].message


def test_experts_come_with_samples_of_their_own(tell: Any) -> None:
    story = in_parts(tell, "expert", drawn=tell.strided(96, 4))
    assert story.observation("DATA011").state is not State.CONTRADICTED
    assert story.observation("DATA001").state is State.VERIFIED
    assert Layout.of(story.trace()).copies == ((0, 2), (1, 3))


def test_one_model_on_all_ranks_has_nothing_to_divide(tell: Any) -> None:
    story = tell.Story(2, 96)
    story.group()
    for r in story.ranks:
        r.event("parallel", 7, kind="tensor", dims=[["tp", [0, 1]]], stage=None)
    story.epoch(dict.fromkeys(range(2), tell.strided(96, 1)[0]))
    story.validate(dict.fromkeys(range(2), range(30)))
    seen = story.observation("DATA001")
    assert seen.state is State.NOT_OBSERVABLE
    assert "Ranks 0 and 1 hold parts of one model (dimension `tp`)" in seen.reason
    for code in ("EVAL001", "EVAL004"):
        assert story.observation(code).state is State.VERIFIED
    assert story.observation("GRAD007").state is State.NOT_OBSERVABLE


def test_gradients_are_compared_among_copies(tell: Any) -> None:
    story = in_parts(tell)
    for r in story.ranks:
        story.step(r.rank, (1.0 + r.rank % 2, 2.0, 3.0))
    seen = story.observation("GRAD001")
    assert seen.state is State.VERIFIED
    assert "ranks with equal parts (0 and 2; 1 and 3)" in seen.reason
    for r in story.ranks:
        story.step(r.rank, (1.0 + r.rank // 2, 2.0, 3.0))
    (hit,) = story.observation("GRAD001").hits
    assert hit.ranks == (0, 2)
    assert "dimension `dp`" in hit.hint


def test_one_gradient_for_different_parts(tell: Any) -> None:
    story = in_parts(tell)
    for r in story.ranks:
        line = [2 * (r.rank // 2), 2 * (r.rank // 2) + 1]
        r.event("placed", 9, optimizer=0, splits=[["tp", line]], names=list(tell.names), of=[[0], [], []])
    (hit,) = story.observation("GRAD001").hits
    assert hit.ranks == (0, 1)
    assert f"different parts of `{tell.names[0]}` (dimension `tp`)" in hit.message


def test_a_part_that_never_steps(tell: Any) -> None:
    story = tell.Story(2, 96)
    story.group()
    for r in story.ranks:
        r.event("parallel", 7, kind="pipeline", dims=[["", [0, 1]]], stage=r.rank)
    story.step(0, (1.0, 2.0, 3.0))
    story.step(0, (1.0, 2.0, 3.0))
    for r in story.ranks:
        r.event("end", backwards=4, group_destroyed=True)
    (hit,) = story.observation("GRAD001").hits
    assert hit.ranks == (1,)
    assert "holds a part of the model, went backward 4 times and took no optimizer step" in hit.message


@pytest.mark.parametrize(
    ("group", "state"), [(None, State.VERIFIED), ("dp", State.VERIFIED), ("tp", State.CONTRADICTED)]
)
def test_parts_of_a_metric_are_joined_across_models(tell: Any, group: str | None, state: State) -> None:
    story = in_parts(tell)
    shares = tell.strided(30, 2, shuffle=False, pad=False)
    story.validate({r: shares[r // 2] for r in range(4)}, num_replicas=2)
    for r in story.ranks:
        row, column = divmod(r.rank, 2)
        lines = {None: None, "dp": (column, column + 2), "tp": (2 * row, 2 * row + 1)}
        story.collective(r.rank, "all_reduce", 33)
        calls = r.fields["collectives"]
        calls[-1] = tell.replace(calls[-1], ranks=lines[group])
    seen = story.observation("EVAL001")
    assert seen.state is state
    if seen.hits:
        assert "brings together ranks 0 and 1 only (dimension `tp`)" in seen.hits[0].message


def test_what_is_told_in_another_shape_counts_for_nothing(tell: Any) -> None:
    story = tell.honest()
    for told in (None, 3, [1], [["tp", "x"]], [["tp", [0, 9]]], [["tp", [1]]], [[["tp"], [0, 1], 2]]):
        story.ranks[0].event("parallel", 7, kind=["tensor"], dims=told, stage=None)
        story.ranks[0].event("placed", 7, optimizer=0, splits=told, names=told, of=told)
        story.ranks[0].event("mesh", 7, dims=told)
    found = Layout.of(story.trace())
    assert not found.divided
    assert found.copies == ((0, 1),)
    assert story.observation("GRAD001").state is State.VERIFIED
