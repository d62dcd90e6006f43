"""Which line is blamed for ranks that came to differ, and which steps of theirs are compared at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.evidence import Evidence
from grader.checks.rule import Hit, Observation, load_rules
from grader.model.grade import State
from grader.model.line_change import LineChange
from grader.model.trace import RankTrace

NAMES = ("weight", "bias")

TURNS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(batches):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    if step % world == rank:
        optimizer.step()
"""
DIVIDED = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = torch.nn.Linear(8, 2)
model = DistributedDataParallel(net)
for x, y in batches:
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    for p in net.parameters():
        dist.all_reduce(p.data)
        p.data /= {by}
"""
MOMENTUM = """    optimizer.step()
    if rank == 0:
        optimizer.state.clear()"""


def seen(code: str, evidence: Evidence) -> Observation:
    rule = next(rule for rule in load_rules() if rule.code == code)
    look = rule.observe(evidence)
    assert look is not None
    return look


def weights(tell: Any, line: int, sums: tuple[float, float], step: int = 1) -> LineChange:
    """What stood in the weights after a line; line 0: what was found to begin with."""
    return LineChange(0, "weights", step, tell.site(line) if line else None, (), NAMES, sums, 1.0)


def looked_at(story: Any, *changes: tuple[LineChange, ...]) -> Evidence:
    """The story, and a second look at it in which each rank's lines changed that."""
    trace = story.trace()
    ranks: list[RankTrace] = [
        replace(rank, line_changes=told) for rank, told in zip(trace.ranks, changes, strict=True)
    ]
    evidence: Evidence = story.evidence()
    return replace(evidence, second_look=replace(trace, ranks=tuple(ranks)))


def in_turns(tell: Any, exchanges: int = 2) -> Any:
    """Both ranks go backward in each iteration, and take turns at stepping."""
    story = tell.Story()
    story.text = TURNS
    story.group()
    story.wrap()
    for iteration in range(8):
        rank = iteration % 2
        took = 1 if iteration < 2 else 2
        waited = (iteration + 1 if iteration < 2 else 2) if exchanges else 1
        grads = (float(iteration), 1.0, 2.0)
        story.step(
            rank, grads, backwards=waited, exchanges=exchanges * waited, unsynced=0, site=tell.site(14)
        )
        story.params(rank, story.ranks[rank].steps - 1, (float(iteration), took, 2.0))
    return story


def test_steps_of_other_iterations_are_not_compared(tell: Any) -> None:
    story = in_turns(tell)
    look = seen("GRAD001", story.evidence())
    assert look.state is State.NOT_OBSERVABLE
    assert "different iterations" in look.reason
    assert seen("GRAD007", story.evidence()).state is State.CONTRADICTED


def test_steps_of_one_iteration_are_compared_where_one_rank_steps_less_often(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for iteration in range(6):
        grads = (float(iteration), 1.0, 2.0)
        story.step(0, grads, backwards=1, exchanges=2)
        if iteration % 2:
            story.step(1, grads, backwards=2, exchanges=4)
    assert seen("GRAD001", story.evidence()).state is State.VERIFIED


def test_a_rank_that_goes_backward_once_more_for_itself_still_steps_with_the_others(tell: Any) -> None:
    story = in_turns(tell, exchanges=0)
    assert seen("GRAD001", story.evidence()).state is State.CONTRADICTED


def blamed(evidence: Evidence) -> Hit:
    return seen("GRAD007", evidence).hits[0]


def test_a_line_that_ranks_run_in_other_iterations_ran_on_one_alone(tell: Any) -> None:
    begin = weights(tell, 0, (1.0, 2.0), step=0)
    hit = blamed(
        looked_at(
            in_turns(tell),
            (begin, weights(tell, 14, (1.1, 2.1))),
            (begin, weights(tell, 14, (1.2, 2.2))),
        )
    )
    assert "`train.py:14` changed those of rank 0 alone" in hit.message
    assert "out of the test of the rank at `train.py:13`" in hit.hint


def divided(tell: Any, by: str) -> Hit:
    """Both ranks double each tensor; rank 1 halves it again, and what it has then it had before."""
    story = tell.Story()
    story.text = DIVIDED.format(by=by)
    story.group()
    story.wrap()
    for rank, half in ((0, 1.0), (1, 2.0)):
        for n in range(3):
            story.step(rank, (1.0, 2.0, 3.0), backwards=1, exchanges=3)
            story.params(rank, n, (2.0 / half, 4.0 / half, 1.0))
    begin = (weights(tell, 0, (0.9, 1.9), step=0), weights(tell, 11, (1.0, 2.0)))
    zero = (*begin, weights(tell, 13, (2.0, 2.0)), weights(tell, 13, (2.0, 4.0)))
    one = [weights(tell, 13, (2.0, 2.0)), weights(tell, 14, (1.0, 2.0))]
    one += [weights(tell, 13, (1.0, 4.0)), weights(tell, 14, (1.0, 2.0))]
    return blamed(looked_at(story, zero, (*begin, *one)))


def test_a_state_that_comes_back_is_not_what_both_had_last(tell: Any) -> None:
    hit = divided(tell, "dist.get_rank() + 1")
    assert "`train.py:14` changed those of rank 1 alone" in hit.message
    assert hit.hint == (
        "Use the same number on all ranks in `train.py:14`: `dist.get_rank() + 1` is another one on each."
    )


def test_who_runs_a_line_under_no_test_is_not_told_to_run_it(tell: Any) -> None:
    assert divided(tell, "own").hint == "Let `train.py:14` do the same on all ranks."


def test_steps_that_differ_because_one_rank_lost_its_momentum(tell: Any) -> None:
    story = tell.Story()
    story.text = TURNS.replace("    if step % world == rank:\n        optimizer.step()", MOMENTUM)
    story.group()
    story.wrap()
    for rank in range(2):
        for n in range(3):
            story.step(rank, (1.0, 2.0, 3.0), backwards=1, exchanges=3, site=tell.site(13))
            story.params(rank, n, (1.0 + rank, 2.0, 1.0))
    begin = weights(tell, 0, (0.9, 1.9), step=0)
    looks = [(begin, weights(tell, 13, (1.0 + rank, 2.0))) for rank in range(2)]
    hit = blamed(looked_at(story, *looks))
    assert "`train.py:13` left other numbers on each rank" in hit.message
    assert (
        "`train.py:15` changes what the optimizer remembers on some ranks only (`rank == 0`)" in hit.message
    )
    assert hit.hint.startswith("Let all ranks run `optimizer.state.clear()`, or none")
    assert [w.line for w in hit.where][:3] == [15, 14, 13]


def test_a_wrapper_that_is_told_to_send_nothing_made_nothing_equal(tell: Any) -> None:
    story = tell.Story()
    story.text = TURNS.replace("Linear(8, 2))", "Linear(8, 2), init_sync=False)")
    story.group()
    story.wrap()
    for rank in range(2):
        for n in range(3):
            story.step(rank, (1.0, 2.0, 3.0), backwards=1, exchanges=3, site=tell.site(14))
            story.params(rank, n, (1.0 + rank, 2.0, 1.0))
    hit = blamed(story.evidence())
    assert "`train.py:8` wraps with `init_sync=False`" in hit.message
    assert "equal once" not in hit.message
    assert hit.hint.startswith("Drop `init_sync=False` at `train.py:8`")
    assert hit.fix is not None


def left_otherwise(tell: Any, text: str, line: int, alone: bool = False) -> Hit:
    """A wrapped model's weights, equal until a line left other numbers on each rank, or one rank alone ran it."""
    story = tell.Story()
    story.text = text
    story.group()
    story.wrap()
    for rank in range(2):
        for n in range(3):
            story.step(rank, (1.0, 2.0, 3.0), backwards=1, exchanges=3)
            story.params(rank, n, (1.0 + rank, 2.0, 1.0))
    begin = weights(tell, 0, (0.9, 1.9), step=0)
    looks = [(begin, weights(tell, line, (1.0 + rank, 2.0))) for rank in range(2)]
    return blamed(looked_at(story, looks[0], (begin,) if alone else looks[1]))


GUARDED = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 2))
for step, (x, y) in enumerate(batches):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    {guard}
    {step}
"""


@pytest.mark.parametrize(
    ("guard", "step", "line", "test", "hint"),
    [
        (
            "if not spike(loss):",
            "    optimizer.step()",
            11,
            "`not spike(loss)`",
            "`dist.all_reduce(go_on, op=dist.ReduceOp.MIN)` right before `train.py:10`, and there `if go_on.item():`",
        ),
        (
            "if spike(loss):\n        continue",
            "optimizer.step()",
            12,
            "`spike(loss)`",
            "`dist.all_reduce(stop, op=dist.ReduceOp.MAX)` right before `train.py:10`, and there `if stop.item():`",
        ),
    ],
)
def test_a_step_that_each_rank_decides_on_by_itself(
    tell: Any, guard: str, step: str, line: int, test: str, hint: str
) -> None:
    hit = left_otherwise(tell, GUARDED.format(guard=guard, step=step), line, alone=True)
    assert f"Whether a step is taken, `train.py:10` decides by {test}" in hit.message
    assert hint in hit.hint
    assert [p.line for p in hit.where[:2]] == [line, 10]


def test_a_change_that_other_ranks_may_have_made_too_is_not_laid_to_a_test(tell: Any) -> None:
    text = GUARDED.format(guard="if step == 2:", step="    model.module.weight.data.mul_(scale)")
    assert "decides by" not in left_otherwise(tell, text, 11, alone=True).message


NOISY = """import torch
import torch.distributed as td
from torch.nn.parallel import DistributedDataParallel


class Noise:
    def __init__(self, parameters):
        self.kept = list(parameters)

    def add(self):
        for parameter in self.kept:
            parameter.data.add_(torch.randn_like(parameter))


net = torch.nn.Linear(8, 2)
wrapped = DistributedDataParallel(net)
noise = Noise(wrapped.parameters())
for x, y in batches:
    criterion(wrapped(x), y).backward()
    optimizer.step()
    noise.add()
    for parameter in net.parameters():
        parameter.data.add_(torch.randn_like(parameter))
"""


def test_weights_are_sent_by_a_name_that_is_bound_at_the_line(tell: Any) -> None:
    hint = left_otherwise(tell, NOISY, 23).hint
    assert "`for tensor in net.state_dict().values(): td.broadcast(tensor, src=0)`" in hint


def test_weights_are_sent_in_words_where_no_name_holds_the_model(tell: Any) -> None:
    hint = left_otherwise(tell, NOISY, 12).hint
    assert "Right after `train.py:12` give all ranks what rank 0 has: each of the model's tensors" in hint
    assert "state_dict" not in hint


COPIED_EARLY = """import torch
from torch.nn.parallel import DistributedDataParallel


class Lookahead:
    def __init__(self, parameters):
        self.fast = list(parameters)
        self.slow = [p.detach().clone() for p in self.fast]

    def pull(self):
        for slow, fast in zip(self.slow, self.fast):
            fast.data.copy_(slow)


net = torch.nn.Linear(8, 2)
lookahead = Lookahead(net.parameters())
model = DistributedDataParallel(net)
for x, y in batches:
    criterion(model(x), y).backward()
    optimizer.step()
    lookahead.pull()
"""


def test_a_copy_that_was_taken_before_the_wrap(tell: Any) -> None:
    hit = left_otherwise(tell, COPIED_EARLY, 12)
    assert hit.hint.startswith(
        "Move `lookahead = Lookahead(net.parameters())` from `train.py:16` below the wrapper"
    )
    assert hit.where[0].line == 16
    lines = COPIED_EARLY.splitlines(keepends=True)
    later = "".join([*lines[:15], lines[16], lines[15], *lines[17:]])
    assert "Move" not in left_otherwise(tell, later, 12).hint


RESUMED = """import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(torch.nn.Linear(8, 2))
{test}
    checkpoint = torch.load("last.pt")
    model.module.load_state_dict(checkpoint["model"])
for x, y in batches:
    criterion(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "what"),
    [
        (
            'if dist.get_rank() == 0 and os.path.exists("last.pt"):',
            "Drop the rank from the test at `train.py:8`",
        ),
        ("if dist.get_rank() == 0:", "Drop the test of the rank at `train.py:8`"),
    ],
)
def test_a_line_that_needs_what_is_made_under_the_same_test_stays_there(
    tell: Any, test: str, what: str
) -> None:
    hint = left_otherwise(tell, RESUMED.replace("{test}", test), 10, alone=True).hint
    assert hint.startswith(what)
    assert "`train.py:10` needs `checkpoint`" in hint
