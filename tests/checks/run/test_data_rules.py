"""DATA rules over runs: each fault beside the honest styles that look like it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.never_run import telling_what_never_runs
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
PLAIN = {"sampler": "RandomSampler", "num_replicas": None, "sampler_rank": None, "sampler_seed": None}


def shuffled(n: int, seed: int) -> list[int]:
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return order


def states(story: Any, *codes: str) -> dict[str, State]:
    return {code: story.observation(code).state for code in codes}


DATA = ("DATA001", "DATA002", "DATA003", "DATA004", "DATA005")
ALL_CLEAN = dict.fromkeys(DATA, CLEAN)


# ---- honest styles -----------------------------------------------------------------------------------------------


def test_distributed_sampler_with_set_epoch(tell: Any) -> None:
    assert states(tell.honest(), *DATA) == ALL_CLEAN


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_padding_of_the_last_round(tell: Any, world_size: int) -> None:
    story = tell.honest(world_size, n=97)
    assert states(story, *DATA) == ALL_CLEAN


def test_hand_written_strided_sampler(tell: Any) -> None:
    story = tell.Story(num_train=95)
    for epoch in range(2):
        shards = tell.strided(95, 2, epoch, pad=False)
        story.epoch(shards, sampler="StridedSampler", num_replicas=None, sampler_rank=None, batch=8)
    assert states(story, *DATA) == ALL_CLEAN


def test_a_subset_per_rank_with_local_shuffle(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        shards = {r: random.Random(epoch).sample(range(r, 96, 2), 48) for r in range(2)}
        story.epoch(shards, size=48, **PLAIN)
    assert states(story, *DATA) == {**ALL_CLEAN, "DATA002": FLAGGED}
    assert story.observation("DATA002").hits[0].severity is Severity.HINT


def test_gradient_accumulation(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        story.epoch(tell.strided(96, 2, epoch), every=3, sampler_epoch=epoch)
    assert states(story, *DATA) == ALL_CLEAN


def test_a_sampler_over_world_minus_one_ranks(tell: Any) -> None:
    story = tell.Story(world_size=3)
    for epoch in range(2):
        shards = tell.strided(96, 2, epoch)
        story.epoch({1: shards[0], 2: shards[1]}, num_replicas=2)
    assert states(story, *DATA) == ALL_CLEAN


def test_dropping_the_last_incomplete_global_batch(tell: Any) -> None:
    story = tell.Story(num_train=103)
    for epoch in range(2):
        shards = tell.strided(103, 2, epoch, pad=False)
        story.epoch({r: s[:48] for r, s in shards.items()}, drop_last=True)
    look = story.observation("DATA004")
    assert look.state is CLEAN
    assert "7 samples were dropped" in look.reason


ROUNDED = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Shares(Sampler):
    def __init__(self, size):
        self.size = {}

    def __iter__(self):
        return iter(torch.randperm(self.size).tolist()[rank::world])


shares = Shares(len(train_set))
loader = DataLoader(train_set, batch_size=8, sampler=shares)
for x, y in loader:
    train_step(x, y)
"""


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("size // 64 * 64", "without `size // 64 * 64`"),
        ("size - size % 64", "without `size - size % 64`"),
        ("size // 50 * 50", "`train.py:14` takes them from a part of the set"),
        ("size // world * world", "`train.py:14` takes them from a part of the set"),
    ],
)
def test_a_number_of_samples_that_was_rounded_down_is_named(tell: Any, size: str, said: str) -> None:
    story = tell.Story(num_train=120)
    story.text = ROUNDED.format(size).lstrip()
    for epoch in range(2):
        story.epoch(tell.strided(64, 2, epoch), sampler="Shares", root=120, site=tell.site(18))
    (hit,) = story.observation("DATA004").hits
    assert "every k-th sample" not in hit.hint, "that is what it does"
    assert said in hit.hint
    assert hit.where[0].line == (11 if "without" in said else 14)


def test_a_wrapper_that_fills_the_last_global_batch(tell: Any) -> None:
    # As Accelerate does: 100 samples, 2 × 8 per step, the last step is filled from the beginning of the order.
    story = tell.Story(num_train=100)
    for epoch in range(2):
        order = shuffled(100, epoch)
        order += order[:12]
        shards: dict[int, list[int]] = {0: [], 1: []}
        for n in range(0, 112, 8):
            shards[n // 8 % 2] += order[n : n + 8]
        story.epoch(shards, sampler="RandomSampler", num_replicas=None)
    assert states(story, *DATA) == ALL_CLEAN


LEFT = """from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(6):
    sampler.set_epoch(epoch)
    for it, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        if it >= 3:
            break
"""


@pytest.mark.parametrize("text", [LEFT, "import torch\n"])
@pytest.mark.parametrize("num_epochs", [2, 6])
def test_an_early_break_in_every_epoch(tell: Any, num_epochs: int, text: str) -> None:
    story = tell.Story()
    story.text = text
    for epoch in range(num_epochs):
        shards = {r: s[:32] for r, s in tell.strided(96, 2, epoch).items()}
        story.epoch(shards, exhausted=False, sampler_epoch=epoch, site=tell.site(4))
    assert states(story, *DATA) == {**ALL_CLEAN, "DATA004": FLAGGED}
    (hit,) = story.observation("DATA004").hits
    assert hit.severity is Severity.WARNING
    assert "after 4 of 6 batches: 32 of 96 training samples" in hit.message
    if text == LEFT:
        assert [place.line for place in hit.where] == [11, 12, 4]
        assert "`train.py:12` breaks it off, `it >= 3`." in hit.message
        assert hit.hint.startswith("Take `break` at `train.py:12` out")


AGAIN = """from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(4):
    sampler.set_epoch(epoch)












    for step in range(len(loader)):
        x, y = next(iter(loader))  # line 20, as the run tells
        criterion(model(x), y).backward()
"""


def begun_anew(
    tell: Any, told: Callable[[int, int], int | None], *, evaluated: bool = False, **options: Any
) -> Any:
    """Four epochs of six steps, each with the first batch of a pass of its own; `told`: the sampler's epoch by then."""
    story = tell.Story()
    for epoch in range(4):
        for step in range(6):
            number = told(epoch, step)
            order = tell.strided(96, 2, 100 * epoch + step if number is None else number)
            shards = {r: s[:8] for r, s in order.items()}
            story.epoch(shards, exhausted=False, sampler_epoch=number, site=tell.site(4), **options)
        for rank in story.ranks if evaluated else ():
            rank.event("evaluation", 30, op="begin")
            rank.event("evaluation", 30, op="end", num_samples=8)
    return story


def test_an_iterator_that_is_begun_anew_for_every_step(tell: Any) -> None:
    story = begun_anew(tell, lambda epoch, step: epoch)
    story.text = AGAIN
    assert states(story, *DATA) == {**ALL_CLEAN, "DATA004": FLAGGED}
    (hit,) = story.observation("DATA004").hits
    assert hit.severity is Severity.WARNING
    assert [place.line for place in hit.where] == [20, 4]
    assert "A rank took 6 steps on the same 8 samples in each of 4 epochs, and 80 of 96" in hit.message
    assert "write `for x, y in loader:` in place of the loop's head at `train.py:19`" in hit.hint
    assert "leave out `x, y = next(iter(loader))` at `train.py:20`" in hit.hint
    assert "Each of 4 epochs brought its samples in a new order" in story.observation("DATA002").reason


def test_an_iterator_that_is_begun_anew_by_code_that_is_not_known(tell: Any) -> None:
    story = begun_anew(tell, lambda epoch, step: epoch)
    (hit,) = story.observation("DATA004").hits
    assert hit.hint.startswith("Begin one iterator for each epoch")


def test_iterators_begun_anew_under_one_number_are_epochs_where_something_lies_between(tell: Any) -> None:
    alike = begun_anew(tell, lambda epoch, step: 0)
    assert "where an epoch ends is not known" in alike.observation("DATA002").reason
    (hit,) = alike.observation("DATA004").hits
    assert "A rank took 24 steps on the same 8 samples, and 80 of 96" in hit.message
    evaluated = begun_anew(tell, lambda epoch, step: 0, evaluated=True)
    assert "in each of 4 epochs" in evaluated.observation("DATA004").reason


def test_iterators_whose_order_is_another_each_time_draw_by_chance(tell: Any) -> None:
    story = begun_anew(tell, lambda epoch, step: None, sampler="RandomSampler", num_replicas=None)
    look = story.observation("DATA004")
    assert look.state is FLAGGED
    assert "each begins with a new order, of which one step takes the first batch" in look.hits[0].message


def test_a_loader_of_one_batch_may_be_begun_anew_for_every_step(tell: Any) -> None:
    story = tell.Story(num_train=16)
    for epoch in range(4):
        story.epoch(tell.strided(16, 2, epoch), exhausted=False, sampler_epoch=epoch)
    assert story.observation("DATA004").state is not FLAGGED


def drawn(tell: Any, lengths: list[int], **options: Any) -> Any:
    """Epochs whose shares of 48 samples are left after so many; the whole share runs dry."""
    story = tell.Story()
    for epoch, length in enumerate(lengths):
        shards = {r: s[:length] for r, s in tell.strided(96, 2, epoch).items()}
        story.epoch(shards, exhausted=length == 48, sampler_epoch=epoch, **options)
    return story


@pytest.mark.parametrize(
    ("lengths", "every"),
    [
        ([48, 48, 24], 1),  # a number of steps that ends the last epoch
        ([48, 16, 48], 1),  # one that was stopped
        ([40, 40, 40], 1),  # one batch of all ranks is left
        ([32, 32, 32], 2),  # what is no whole round of accumulated gradients
        ([24, 32, 16, 40], 1),  # by a clock
    ],
)
def test_epochs_that_are_left_by_a_plan(tell: Any, lengths: list[int], every: int) -> None:
    story = drawn(tell, lengths, every=every)
    assert story.observation("DATA004").state is not FLAGGED


@pytest.mark.parametrize("left", [8, 24, 40])
@pytest.mark.parametrize("line", [11, 50])
def test_an_epoch_that_is_left_and_resumed(tell: Any, left: int, line: int) -> None:
    # 97 samples: one of them fills the last share, and both parts of the epoch draw it.
    story = tell.Story(num_train=97)
    for epoch in range(2):
        shards = tell.strided(97, 2, epoch)
        story.epoch({r: s[:left] for r, s in shards.items()}, exhausted=False, sampler_epoch=epoch)
        rest = {r: s[left:] for r, s in shards.items()}
        story.epoch(rest, name="rest", site=tell.site(line), sampler_epoch=epoch)
    assert states(story, *DATA) == ALL_CLEAN
    assert [len(s.epochs) for s in story.evidence().ledger.training] == [2]


def test_a_set_that_is_dealt_out_in_chunks(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        for chunk in range(0, 96, 32):
            order = shuffled(32, epoch)
            story.epoch({r: [chunk + i for i in order[r::2]] for r in range(2)}, size=32, sampler_epoch=epoch)
    assert states(story, *DATA) == ALL_CLEAN


def test_one_pass_needs_no_new_order(tell: Any) -> None:
    look = tell.honest(epochs=1).observation("DATA002")
    assert look.state is CLEAN
    assert "one pass" in look.reason


def test_a_set_that_is_never_shuffled_has_no_order_to_renew(tell: Any) -> None:
    story = tell.Story()
    for _ in range(2):
        story.epoch(tell.strided(96, 2, shuffle=False), shuffle=False)
    assert story.observation("DATA002").state is CLEAN


def test_a_common_subset_that_the_ranks_divide(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        story.epoch(tell.strided(80, 2, epoch), size=80)
    assert states(story, "DATA001", "DATA003", "DATA004") == {
        "DATA001": CLEAN,
        "DATA003": CLEAN,
        "DATA004": CLEAN,
    }


def test_slices_beside_a_held_out_part_of_the_same_root(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        rng = random.Random(epoch)
        story.epoch({r: rng.sample(range(r, 80, 2), 40) for r in range(2)}, size=40, **PLAIN)
        story.validate({0: range(80, 96)}, split="train", size=16, root=96, num_replicas=None)
    assert story.observation("DATA004").state is CLEAN


def test_an_endless_strided_stream(tell: Any) -> None:
    story = tell.Story(num_train=400)
    orders = [shuffled(400, e) for e in range(4)]
    story.epoch(
        {r: [i for o in orders for i in o[r::2]] for r in range(2)}, exhausted=None, sampler="TrainingSampler"
    )
    assert states(story, "DATA001", "DATA002", "DATA003") == {
        "DATA001": CLEAN,
        "DATA002": CLEAN,
        "DATA003": CLEAN,
    }


def test_slices_that_each_rank_numbers_from_zero_are_not_compared(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        story.epoch({r: shuffled(48, epoch) for r in range(2)}, root=48, split=None, **PLAIN)
    assert states(story, "DATA001", "DATA003", "DATA004") == {
        "DATA001": CLEAN,
        "DATA003": UNSEEN,
        "DATA004": UNSEEN,
    }


def test_data_sets_of_each_rank_s_own_that_add_up(tell: Any) -> None:
    story = tell.Story(num_train=97)
    for epoch in range(2):
        for rank, size in enumerate((49, 48)):
            story.epoch({rank: shuffled(size, epoch)}, root=size, digest=f"slice {rank}", batch=7, **PLAIN)
    assert states(story, *DATA) == ALL_CLEAN


def test_the_same_slice_built_on_every_rank(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        story.epoch({r: shuffled(48, epoch) for r in range(2)}, root=48, digest="one slice", **PLAIN)
    assert story.observation("DATA001").state is FLAGGED


def test_a_data_set_that_hides_its_subset_is_judged_by_what_was_fed(tell: Any) -> None:
    story = tell.Story(num_train=64)
    for epoch in range(2):
        for rank in range(2):
            order = shuffled(32, epoch)
            story.epoch({rank: order}, root=32, size=32, split=None, hides=True, every=10**6, **PLAIN)
            fed = [f"sample {2 * i + rank}" for i in order]
            story.feed(rank, [fed[n : n + 8] for n in range(0, 32, 8)])
    # What each rank was fed never changes hands: free advice, as the shares are none that a sampler deals.
    assert states(story, "DATA001", "DATA002", "DATA003") == {
        "DATA001": CLEAN,
        "DATA002": FLAGGED,
        "DATA003": CLEAN,
    }


def test_passages_that_stand_twice_in_a_text_are_no_overlap(tell: Any) -> None:
    story = tell.Story()
    text = [f"window {i % 195}" for i in range(200)]
    for epoch in range(2):
        order = shuffled(200, epoch)
        for rank in range(2):
            story.epoch(
                {rank: list(range(100))}, root=None, size=None, split=None, hides=True, every=10**6, **PLAIN
            )
            fed = [text[i] for i in order[rank::2]]
            story.feed(rank, [fed[n : n + 10] for n in range(0, 100, 10)])
    assert states(story, "DATA001", "DATA002", "DATA003") == dict.fromkeys(
        ("DATA001", "DATA002", "DATA003"), CLEAN
    )


BY_HAND = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
x, y = torch.load("rows.pt")
{draws}
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    order = {order}
    for rows in order.split(8):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
dist.destroy_process_group()
"""
SHARE = "torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))[rank::world_size]"


@pytest.mark.parametrize(
    ("draws", "order", "why"),
    [
        (
            "",
            "torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))",
            "every rank reads all of it",
        ),
        (
            "g = torch.Generator().manual_seed(7 + rank)",
            "torch.randperm(len(x), generator=g)",
            "with the rank in its seed: each rank meets every sample, only in another order",
        ),
    ],
)
def test_whole_orders_by_hand_are_told_with_their_line_and_what_divides_them(
    tell: Any, draws: str, order: str, why: str
) -> None:
    story = tell.Story(num_train=64)
    story.text = BY_HAND.format(draws=draws, order=order)
    for rank in range(2):
        for epoch in range(3):
            whole = [f"row {i}" for i in shuffled(64, 10 * epoch + rank * bool(draws))]
            story.feed(rank, [whole[n : n + 8] for n in range(0, 64, 8)])
    (hit,) = story.observation("DATA001").hits
    assert why in hit.message
    assert "64 samples in epochs 0 to 2" in hit.message
    assert f"`order = {SHARE}`" in hit.hint
    assert "seed + rank" not in hit.hint
    lines = story.text.splitlines()
    assert [lines[place.line - 1].strip() for place in hit.where] == [f"order = {order}"]


def test_whole_sets_in_order_are_told_to_read_apart(tell: Any) -> None:
    said = {}
    for seed in ("7", "7 + rank"):
        story = tell.Story(num_train=64)
        order = "torch.randint(len(x), (64,), generator=g)"
        story.text = BY_HAND.format(draws=f"g = torch.Generator().manual_seed({seed})", order=order)
        for rank in range(2):
            for _ in range(3):
                story.feed(rank, [[f"row {i}" for i in range(n, n + 8)] for n in range(0, 64, 8)])
        (hit,) = story.observation("DATA001").hits
        assert "(step * world_size + rank) * batch_size" in hit.hint
        said[seed] = "seed + rank" in hit.hint
    assert said == {"7": True, "7 + rank": False}, "no advice to do what is done already"


def test_shares_by_hand_are_counted_right(tell: Any) -> None:
    story = tell.Story(num_train=192)
    story.text = BY_HAND.format(draws="", order=SHARE)
    for epoch in range(6):
        order = shuffled(192, epoch)
        for rank in range(2):
            share = [f"row {i}" for i in order[rank::2]]
            story.feed(rank, [share[n : n + 16] for n in range(0, 96, 16)])
    told = {code: story.observation(code).reason for code in ("DATA001", "DATA002", "DATA003", "DATA004")}
    assert "(rank 0: 96, rank 1: 96)" in told["DATA001"]
    assert told["DATA002"] == "Each of 6 epochs brought its samples in a new order."
    assert told["DATA003"] == "No sample was drawn by two ranks in the same epoch (6 epochs)."
    assert told["DATA004"] == "6 epochs together drew all 192 training samples."


@pytest.mark.parametrize(
    ("num_train", "reason"),
    [
        (0, "6 whole epochs drew 192 samples; how many there are in all is not known"),
        (400, "Only samples that come again tell where an epoch ends"),
    ],
)
def test_whole_epochs_of_which_nobody_knows_what_is_missing_are_not_called_left(
    tell: Any, num_train: int, reason: str
) -> None:
    story = tell.Story(num_train=num_train)
    story.text = BY_HAND.format(draws="", order=SHARE)
    for epoch in range(6):
        order = shuffled(192, epoch)
        for rank in range(2):
            share = [f"row {i}" for i in order[rank::2]]
            story.feed(rank, [share[n : n + 16] for n in range(0, 96, 16)])
    look = story.observation("DATA004")
    assert (look.state, reason in look.reason) == (UNSEEN, True), look.reason


def test_nothing_is_counted_where_epochs_begin_somewhere_near(tell: Any) -> None:
    story = tell.Story(num_train=192)
    for epoch in range(6):
        order = shuffled(192, epoch)
        for rank, share in enumerate((order[:80], order[80:])):
            story.feed(rank, [[f"row {i}"] for i in share])
    told = [story.observation(code).reason for code in ("DATA001", "DATA002", "DATA003", "DATA004")]
    assert not any(word in " ".join(told) for word in ("rank 0:", "padding", "6 epochs", "3 epochs"))


READER = """
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
for epoch in range(2):
    order, at = shuffled(epoch), 8 * rank
    while at + 8 <= len(order):
        learn(text[order[at : at + 8]])
        at += 8
dist.destroy_process_group()
"""


def _read_in_turn(story: Any, *, world: int, epochs: int, step: int, steps: int | None = None) -> None:
    """Ranks begin a batch apart and move on by a number of batches; a text holds each fortieth passage twice."""
    for epoch in range(epochs):
        rows = [f"row {i - (i % 40 == 39)}" for i in shuffled(400, epoch)]
        batches = [rows[n : n + 8] for n in range(0, 400, 8)]
        number = steps or (len(batches) - world) // step + 1
        for rank in range(world):
            story.feed(rank, batches[rank : rank + number * step : step])


@pytest.mark.parametrize("known", [400, None])
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize(("epochs", "steps"), [(3, None), (1, None), (1, 25)])
def test_ranks_that_read_the_same_in_turn(
    tell: Any, known: int | None, world: int, epochs: int, steps: int | None
) -> None:
    story = tell.Story(world, num_train=known)
    story.text = READER
    _read_in_turn(story, world=world, epochs=epochs, step=1, steps=steps)
    hits = [hit for code in ("DATA001", "DATA003") for hit in story.observation(code).hits]
    (hit,) = hits
    assert epochs == 1 or "in epochs 0 to 2" in hit.message
    assert (
        "`train.py:10` moves on by `8` in each step, from a place of each rank's own, `8 * rank`"
        in hit.message
    )
    assert "Write `at += 8 * world` at `train.py:10`" in hit.hint


@pytest.mark.parametrize("known", [400, None])
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize(("epochs", "steps"), [(3, None), (1, None), (1, 12)])
def test_ranks_that_read_by_turns_share_nothing(
    tell: Any, known: int | None, world: int, epochs: int, steps: int | None
) -> None:
    story = tell.Story(world, num_train=known)
    _read_in_turn(story, world=world, epochs=epochs, step=world, steps=steps)
    assert FLAGGED not in states(story, *DATA).values()


@pytest.mark.parametrize("world", [2, 4, 8])
def test_draws_by_hand_with_replacement_are_no_epochs(tell: Any, world: int) -> None:
    story = tell.Story(world)
    for rank in range(world):
        rng = random.Random(rank)
        story.feed(rank, [[f"row {rng.randrange(400)}" for _ in range(8)] for _ in range(60)])
    assert FLAGGED not in states(story, *DATA).values()


def test_random_windows_with_a_seed_per_rank(tell: Any) -> None:
    story = tell.Story(num_train=1000)
    for rank in range(2):
        rng = random.Random(rank)
        story.feed(rank, [[f"window {rng.randrange(10**9)}" for _ in range(8)] for _ in range(20)])
    assert FLAGGED not in states(story, *DATA).values()


def test_uneven_inputs_under_join(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.epoch({0: range(56), 1: range(56, 96)}, size=48, **PLAIN)
    for rank in range(2):
        story.final(rank, (1.0, 2.0, 3.0))
    assert story.observation("DATA005").state is CLEAN


def test_weights_that_ranks_even_out_when_one_has_run_dry(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    for _ in range(2):
        story.epoch({0: range(56), 1: range(56, 96)}, size=48, **PLAIN)
    for n in range(5):
        # What rank 1's fifth and last step left is found only after rank 0 has taken two more and sent its weights.
        story.params(0, n, (1.0, 2.0, float(n)))
        story.params(1, n, (1.0, 2.0, float(n) if n < 4 else 6.5))
    assert {story.observation(code).state for code in ("DATA005", "GRAD007")} == {CLEAN}


def test_a_rank_that_crashed_took_fewer_steps_for_another_reason(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    story.epoch({0: shards[0][:32], 1: shards[1][:24]}, exhausted=None)
    story.ending = Ending.CRASHED
    assert story.observation("DATA005").state is UNSEEN


# ---- DATA001 -----------------------------------------------------------------------------------------------------


def test_every_rank_shuffles_the_whole_set_for_itself(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        story.epoch({r: shuffled(96, 10 * epoch + r) for r in range(2)}, **PLAIN)
    look = story.observation("DATA001")
    assert look.state is FLAGGED
    hit = look.hits[0]
    assert "Ranks 0 and 1 drew the same 96 samples in epochs 0 and 1" in hit.message
    assert "`train.py:11`" in hit.message
    assert hit.where[0].line == 11
    assert story.observation("DATA003").state is UNSEEN


def test_every_rank_with_the_same_seed(tell: Any) -> None:
    story = tell.Story()
    story.epoch({r: shuffled(96, 7) for r in range(2)}, **PLAIN)
    assert story.observation("DATA001").state is FLAGGED


def test_the_whole_set_left_early(tell: Any) -> None:
    story = tell.Story(num_train=400)
    story.epoch({r: shuffled(400, r)[:200] for r in range(2)}, exhausted=False, **PLAIN)
    assert story.observation("DATA001").state is FLAGGED


def test_a_common_subset_that_nobody_divides(tell: Any) -> None:
    story = tell.Story()
    story.epoch({r: shuffled(80, r) for r in range(2)}, size=80, **PLAIN)
    assert story.observation("DATA001").state is FLAGGED


def test_equal_feeds_without_a_loader(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.feed(rank, [[f"sample {8 * n + i}" for i in range(8)] for n in range(12)])
    look = story.observation("DATA001")
    assert look.state is FLAGGED
    assert "Nothing in the script divides" in look.hits[0].message


def test_one_rank_has_nothing_to_divide(tell: Any) -> None:
    story = tell.Story(world_size=1)
    story.epoch({0: range(96)}, **PLAIN)
    assert states(story, "DATA001", "DATA003", "DATA004", "DATA005") == dict.fromkeys(
        ("DATA001", "DATA003", "DATA004", "DATA005"), UNSEEN
    )


WINDOWS = """import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for start in range(0, len(order) - 16, 16):
    first = start + rank
    step(order[first:first + 8])
"""


@pytest.mark.parametrize(
    ("begin", "said", "advice"),
    [
        (
            "start + rank",
            "begins a window `start + rank`, one sample behind",
            "Write `rank * 8` for `rank` in `start + rank` at `train.py:7`.",
        ),
        ("rank", "begins a window `rank`, one sample behind", "Write `rank * 8` for `rank` at `train.py:7`."),
        (
            "start + rank * 8 // 2",
            "begins a rank's window at `start + rank * 8 // 2`, and it is `8` samples long",
            "Let windows begin as far apart as they are long: at `rank * 8`.",
        ),
        ("start + rank * 8", "", "Let all ranks shuffle with the same seed"),
    ],
)
def test_the_line_that_makes_windows_overlap_is_named(tell: Any, begin: str, said: str, advice: str) -> None:
    story = tell.Story()
    story.text = WINDOWS.replace("start + rank", begin)
    for _ in range(2):
        story.epoch({0: range(48), 1: range(1, 49)})
    (hit,) = story.observation("DATA003").hits
    assert ("train.py:7" in hit.message) == bool(said)
    assert said in hit.message
    assert hit.hint.startswith(advice)


ONE_REPLICA = """from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data, num_replicas=1, rank=0)
loader = DataLoader(data, batch_size=8, sampler=sampler)
"""


def test_a_sampler_for_one_rank_is_named_with_its_arguments(tell: Any) -> None:
    story = tell.Story()
    story.text = ONE_REPLICA
    for epoch in range(2):
        shard = tell.strided(96, 1, epoch)[0]
        story.epoch({0: shard, 1: shard}, num_replicas=1, sampler_rank=0, site=tell.site(4))
    (hit,) = story.observation("DATA001").hits
    assert [place.line for place in hit.where] == [3, 4]
    assert (
        "`train.py:3` tells the `DistributedSampler` that there is one rank, `num_replicas=1`" in hit.message
    )
    assert hit.hint.startswith("Leave `num_replicas=1, rank=0` out at `train.py:3`")


# ---- DATA002 -----------------------------------------------------------------------------------------------------


def test_no_set_epoch(tell: Any) -> None:
    story = tell.Story()
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler_epoch=0)
    look = story.observation("DATA002")
    assert look.state is FLAGGED
    assert "Ranks 0 and 1 met the same samples in the same order in epochs 0 to 2" in look.hits[0].message
    assert "`set_epoch` did not reach it" in look.hits[0].message
    assert story.observation("DATA001").state is CLEAN


UNHEARD = """from torch.utils.data import DataLoader, DistributedSampler
loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
class Reshuffle:
    def before_epoch(self, run):
        run.loader.sampler.set_epoch(run.epoch)
    def before_train_epoch(self, run): ...
def train(run):
    for hook in [Reshuffle()]:
        hook.before_train_epoch(run)
train(run_of(loader))
"""


def test_an_epoch_that_a_hook_would_tell_which_nobody_calls(tell: Any) -> None:
    story = tell.Story()
    story.text = UNHEARD
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler_epoch=0, site=tell.site(2))
    (hit,) = story.observation("DATA002").hits
    assert "is not the loader's" not in hit.message
    told = telling_what_never_runs(story.evidence().script, hit.message, hit.hint, hit.where)
    assert (
        "never runs, because nobody calls `before_epoch`; `train.py:9` calls `before_train_epoch`"
        in told["message"]
    )
    assert told["hint"].startswith("Write `before_train_epoch` instead of `before_epoch` at `train.py:4`")
    assert [place.line for place in told["where"]] == [5, 4, 2]


ASKS_ANOTHER = """from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(3):
    if hasattr(loader.batch_sampler, "set_epoch"):
        loader.batch_sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def test_a_test_that_asks_another_object_for_set_epoch(tell: Any) -> None:
    story = tell.Story()
    story.text = ASKS_ANOTHER
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler_epoch=0, site=tell.site(4))
    (hit,) = story.observation("DATA002").hits
    assert [place.line for place in hit.where][:2] == [7, 6]
    assert "so does the test at `train.py:6`" in hit.message
    assert hit.hint.startswith(
        "Write `loader.sampler` instead of `loader.batch_sampler`, there and in that test"
    )


def test_a_batch_sampler_has_the_sampler_that_is_to_be_told(tell: Any) -> None:
    story = tell.Story()
    story.text = (
        ASKS_ANOTHER.replace("batch_sampler", "sampler")
        .replace("batch_size=8, sampler=sampler", "batch_sampler=BatchSampler(sampler, 8, False)")
        .replace("import ", "import BatchSampler, ")
    )
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler_epoch=0, site=tell.site(4))
    (hit,) = story.observation("DATA002").hits
    assert hit.hint.startswith(
        "Write `loader.batch_sampler.sampler` instead of `loader.sampler`, there and in that test"
    )


TOLD_LATE = """from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    sampler.set_epoch(epoch)
"""


def test_a_sampler_that_is_told_when_the_epoch_is_over(tell: Any) -> None:
    story = tell.Story()
    story.text = TOLD_LATE
    for told in (0, 0, 1):
        story.epoch(tell.strided(96, 2, told), sampler_epoch=told, site=tell.site(4))
    (hit,) = story.observation("DATA002").hits
    assert [place.line for place in hit.where] == [10, 4]
    assert "in epochs 0 and 1" in hit.message
    assert "`train.py:10` tells the sampler the number of an epoch when that is over" in hit.message
    assert "Every epoch" not in hit.message
    assert hit.hint.startswith("Move `sampler.set_epoch(epoch)` from `train.py:10`")


def test_a_sampler_that_is_told_late_by_a_loop_that_counts_for_itself(tell: Any) -> None:
    story = tell.Story()
    story.text = (
        TOLD_LATE.replace("for epoch in range(3):", "epoch = 0\nwhile epoch < 3:") + "    epoch += 1\n"
    )
    for told in (0, 0, 1):
        story.epoch(tell.strided(96, 2, told), sampler_epoch=told, site=tell.site(4))
    (hit,) = story.observation("DATA002").hits
    assert "`train.py:11` tells the sampler the number of an epoch when that is over" in hit.message


def test_a_number_that_the_run_saw_change_is_not_called_the_same(tell: Any) -> None:
    story = tell.Story()
    story.text = TOLD_LATE.replace("set_epoch(epoch)", "set_epoch(number_of(epoch))")
    for told in (0, 0, 1):
        story.epoch(tell.strided(96, 2, told), sampler_epoch=told, site=tell.site(4))
    (hit,) = story.observation("DATA002").hits
    assert "told the `DistributedSampler` another number, but not between these epochs" in hit.message
    assert "same number each time" not in hit.message
    assert "before its pass over the loader" in hit.hint


TELLS_ANOTHER = """from torch.utils.data import DataLoader, DistributedSampler

for_training = DistributedSampler(data)
for_validation = DistributedSampler(held_out)
training = DataLoader(data, sampler=for_training)
for epoch in range(3):
    for_validation.set_epoch(epoch)
    for x, y in training:
        criterion(model(x), y).backward()
        optimizer.step()
"""


def test_the_sampler_that_was_meant_is_called_by_its_name(tell: Any) -> None:
    story = tell.Story()
    story.text = TELLS_ANOTHER
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler_epoch=0, site=tell.site(5))
    (hit,) = story.observation("DATA002").hits
    assert hit.hint.startswith("Write `for_training` instead of `for_validation`")


SALTED = """from torch.utils.data import DataLoader, RandomSampler, Subset

mine = [i for i in range(len(data)) if {chosen} % world == rank]
share = Subset(data, mine)
loader = DataLoader(share, sampler=RandomSampler(share))
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("chosen", "line"), [('hash(f"image-{i}")', 3), ("(i + offset())", 5)])
def test_shares_that_overlap_are_never_divided_again(tell: Any, chosen: str, line: int) -> None:
    story = tell.Story()
    story.text = "rank, world = dist.get_rank(), dist.get_world_size()\n" + SALTED.format(chosen=chosen)
    story.text = "import torch.distributed as dist\n" + story.text
    story.epoch({0: range(64), 1: range(32, 96)}, site=tell.site(7))
    (hit,) = story.observation("DATA003").hits
    assert "DistributedSampler(share)" not in hit.hint
    assert ("Python salts the hash of texts" in hit.message) is (line == 3)
    assert hit.where[0].line == line + 2


BY_HASH = """from torch.utils.data import DataLoader, Sampler

class Dealt(Sampler):
    def __init__(self, n, rank, world):
        self.n, self.rank, self.world = n, rank, world

    def __iter__(self):
        order = sorted(range(self.n), key=lambda i: hash(CARD))
        return iter(order[self.rank :: self.world])

loader = DataLoader(data, sampler=Dealt(len(data), rank, world))
"""


@pytest.mark.parametrize(("card", "salted"), [('f"{i:06d}.png"', True), ("str(i)", True), ("(7, i)", False)])
def test_an_order_by_the_hash_of_a_text_is_another_in_each_process(
    tell: Any, card: str, salted: bool
) -> None:
    story = tell.Story()
    story.text = BY_HASH.replace("CARD", card)
    drawn = {r: shuffled(96, r)[r::2] for r in range(2)}
    story.epoch(drawn, site=tell.site(11), sampler="Dealt", num_replicas=None, sampler_rank=None)
    (hit,) = story.observation("DATA003").hits
    assert (hit.where[0].line == 8) is salted
    assert ("zlib.crc32(" in hit.hint) is salted
    assert not salted or f".encode())` instead of `hash({card})`" in hit.hint


OF_ANOTHER = """from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets

train_set = datasets.MNIST("data", train=True)
val_set = datasets.MNIST("data", train=False)
sampler = DistributedSampler(OVER)
loader = DataLoader(train_set, batch_size=8, sampler=sampler)
val_loader = DataLoader(val_set, batch_size=8)
"""


@pytest.mark.parametrize("over", ["val_set", "train_set"])
def test_a_sampler_that_was_made_over_another_set(tell: Any, over: str) -> None:
    story = tell.Story()
    story.text = OF_ANOTHER.replace("OVER", over)
    for epoch in range(2):
        story.epoch(tell.strided(30, 2, epoch), sampler_epoch=epoch, site=tell.site(7))
    (hit,) = story.observation("DATA004").hits
    assert (hit.where[0].line == 6) is (over == "val_set")
    assert ("`train_set` instead of `val_set`" in hit.hint) is (over == "val_set")


OWN_BATCHES = """import torch
from torch.utils.data import DataLoader

class Batches:
    def __init__(self, data):
        self.data, self.epoch = data, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = torch.randperm(len(self.data), generator=torch.Generator().manual_seed(7 + self.epoch))
        yield from order[rank::world_size].view(-1, 8).tolist()

loader = DataLoader(data, batch_sampler=Batches(data))
for epoch in range(3):
    if hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""
ASKING = """    if hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)
"""


@pytest.mark.parametrize(
    ("instead", "lines", "hint"),
    [
        (
            ASKING,
            [18, 17],
            "Write `loader.batch_sampler` instead of `loader.sampler`, there and in that test",
        ),
        ("", [], "Call `loader.batch_sampler.set_epoch(epoch)` at the start of each epoch"),
        ("    loader.batch_sampler.set_epoch(0)\n", [], "Let `train.py:17` tell a number that changes"),
    ],
)
def test_a_sampler_of_ones_own_that_takes_the_epoch_is_not_rewritten(
    tell: Any, instead: str, lines: list[int], hint: str
) -> None:
    story = tell.Story()
    story.text = OWN_BATCHES.replace(ASKING, instead)
    for _ in range(3):
        story.epoch(tell.strided(96, 2), sampler="SequentialSampler", site=tell.site(15))
    (hit,) = story.observation("DATA002").hits
    assert [place.line for place in hit.where] == [*lines, 15]
    assert hit.hint.startswith(hint)
    assert ("not the loader's `Batches`" in hit.message) is bool(lines)


def test_a_hand_written_sampler_with_a_fixed_seed_and_an_early_break(tell: Any) -> None:
    story = tell.Story()
    for _ in range(2):
        shards = tell.strided(96, 2)
        story.epoch({r: s[:32] for r, s in shards.items()}, exhausted=False, sampler="StridedSampler")
    assert story.observation("DATA002").state is FLAGGED


def test_shares_that_are_shuffled_by_themselves(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(3):
        own = tell.strided(96, 2, shuffle=False)
        story.epoch(
            {r: random.Random(epoch).sample(s, len(s)) for r, s in own.items()}, sampler="RandomSampler"
        )
    look = story.observation("DATA002")
    assert look.state is FLAGGED
    assert "drew from shares of their own in all 3 epochs" in look.hits[0].message
    assert look.hits[0].severity is Severity.HINT, (
        "it is a way of its own, where the task asks for nothing else"
    )


def test_workers_that_reorder_batches_hide_nothing(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    swapped = {r: s[8:16] + s[:8] + s[16:] for r, s in shards.items()}
    story.epoch(shards, num_workers=2)
    story.epoch(swapped, num_workers=2)
    assert story.observation("DATA002").state is FLAGGED


def test_equal_orders_in_hashed_feeds(tell: Any) -> None:
    story = tell.Story(num_train=64)
    for rank in range(2):
        for _ in range(2):
            story.feed(rank, [[f"sample {i}" for i in range(rank + n, 64, 8)] for n in range(0, 8, 2)])
    assert story.observation("DATA002").state is FLAGGED


# ---- DATA003 -----------------------------------------------------------------------------------------------------


def test_sampler_seeds_that_differ_by_rank(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.loader(rank, "train", sampler_seed=rank)
    for epoch in range(2):
        story.epoch({r: tell.strided(96, 2, epoch, seed=r + 1)[r] for r in range(2)})
    look = story.observation("DATA003")
    assert look.state is FLAGGED
    assert "seeded differently (0 and 1)" in look.hits[0].message
    assert look.hits[0].details["shared"] > 1
    assert story.observation("DATA001").state is CLEAN


SEED_BY_RANK = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("gloo")
args.seed += dist.get_rank()
torch.manual_seed(args.seed)
sampler = DistributedSampler(data, seed=args.seed)
loader = DataLoader(data, batch_size=8, sampler=sampler)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SEED_BY_RANK, 4),
        (SEED_BY_RANK.replace("args.seed +=", "seed = 42 +").replace("args.seed", "seed"), 4),
        (SEED_BY_RANK.replace("args.seed += dist.get_rank()", "rank = dist.get_rank()")
         .replace("seed=args.seed", "seed=args.seed + rank"), 6),
    ],
)  # fmt: skip
def test_where_the_rank_comes_into_the_seed_is_told_first(tell: Any, text: str, line: int) -> None:
    story = tell.Story()
    story.text = text
    for rank in range(2):
        story.loader(rank, "train", sampler_seed=rank, site=tell.site(7))
    for epoch in range(2):
        story.epoch({r: tell.strided(96, 2, epoch, seed=r + 1)[r] for r in range(2)})
    (hit,) = story.observation("DATA003").hits
    assert f"The rank comes into the seed at `train.py:{line}`" in hit.message
    assert hit.where[0].line == line


DRAWS_ONCE_MORE = """import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
deal = torch.Generator().manual_seed(1)
for epoch in range(3):
    order = torch.randperm(n, generator=deal)[rank::world]
    for rows in order.split(8):
        criterion(model(x[rows]), y[rows]).backward()
        optimizer.step()
    if rank == 0:
        shown = torch.randint(n, (1,), generator=deal)
"""


def test_a_draw_of_one_rank_is_told_before_the_order_that_it_shifts(tell: Any) -> None:
    story = tell.Story()
    story.text = DRAWS_ONCE_MORE
    for rank in range(2):
        for epoch in range(3):
            own = tell.strided(96, 2, epoch, seed=1 + rank * bool(epoch))[rank]
            story.feed(rank, [[f"sample {i}" for i in own[n : n + 8]] for n in range(0, 48, 8)])
    (hit,) = story.observation("DATA003").hits
    assert [p.line for p in hit.where][:2] == [12, 7]
    assert "leave `generator=deal` out" in hit.hint


def test_the_same_rank_given_to_every_sampler(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        shards = tell.strided(96, 2, epoch)
        story.epoch({0: shards[0], 1: shards[0]}, sampler_rank=0)
    look = story.observation("DATA003")
    assert look.state is FLAGGED
    assert "told that its rank is 0" in look.hits[0].message
    assert story.observation("DATA001").state is CLEAN


DRAWN_APART = """from torch.utils.data import DataLoader, RandomSampler

sampler = RandomSampler(data, num_samples=len(data) // world_size)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def test_a_sampler_that_each_rank_draws_from_by_itself(tell: Any) -> None:
    story = tell.Story()
    story.text = DRAWN_APART
    for epoch in range(3):
        drawn = {r: random.Random(10 * epoch + r).sample(range(96), 48) for r in range(2)}
        story.epoch(drawn, sampler="RandomSampler", site=tell.site(4))
    (hit,) = story.observation("DATA003").hits
    assert hit.where[0].line == 3
    assert hit.hint.startswith(
        "Write `DistributedSampler(data)` instead of `RandomSampler(data, num_samples="
    )


WEIGHTED = """from torch.utils.data import DataLoader, WeightedRandomSampler

def balanced(weights, num):
    return WeightedRandomSampler(weights, num)

loader = DataLoader(
    data, batch_size=8, sampler=balanced(weights, len(data) // 2))
"""
WEIGHTS = PLAIN | {"sampler": "WeightedRandomSampler"}


@pytest.mark.parametrize("num", [48, 96])
def test_draws_with_replacement_from_the_whole_set(tell: Any, num: int) -> None:
    """Which samples were drawn is known, and so is who shares them."""
    story = tell.Story()
    story.text = WEIGHTED
    for epoch in range(3):
        drawn = {r: random.Random(10 * epoch + r).choices(range(96), k=num) for r in range(2)}
        story.epoch(drawn, batch=2, site=tell.site(6), **WEIGHTS)
    assert states(story, *DATA) == {**ALL_CLEAN, "DATA003": FLAGGED, "DATA004": FLAGGED}
    (hit,) = story.observation("DATA003").hits
    assert [place.line for place in hit.where] == [4, 6]
    assert "lets each rank draw from the whole set by itself" in hit.message
    assert "of 96 samples no rank drew in that epoch" in hit.message
    assert "sampler=DistributedSampler(data)`" in hit.hint
    assert hit.severity is None


def test_draws_with_replacement_from_shares_of_their_own_are_a_choice(tell: Any) -> None:
    story = tell.Story()
    story.text = """from torch.utils.data import DataLoader, Subset, WeightedRandomSampler

share = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
loader = DataLoader(share, batch_size=8, sampler=WeightedRandomSampler(weights, len(share)))
"""
    for epoch in range(3):
        drawn = {r: random.Random(10 * epoch + r).choices(range(r, 96, 2), k=48) for r in range(2)}
        story.epoch(drawn, size=48, site=tell.site(4), **WEIGHTS)
    assert states(story, *DATA) == {**ALL_CLEAN, "DATA004": FLAGGED}
    (hit,) = story.observation("DATA004").hits
    assert hit.severity is Severity.HINT
    assert "with replacement from a share of its own" in hit.message


def test_a_list_that_holds_samples_several_times_is_divided_by_its_places(tell: Any) -> None:
    story = tell.Story()
    twice = [*range(96), *range(0, 96, 3)] * 2
    for epoch in range(2):
        random.Random(epoch).shuffle(twice)
        story.epoch({r: twice[r::2] for r in range(2)}, size=256, sampler_epoch=epoch)
    assert states(story, "DATA003", "DATA004") == {"DATA003": UNSEEN, "DATA004": UNSEEN}
    assert "holds samples several times" in story.observation("DATA003").reason


def test_slices_that_reach_a_few_samples_too_far(tell: Any) -> None:
    story = tell.Story()
    rng = random.Random(0)
    story.epoch({0: rng.sample(range(51), 51), 1: rng.sample(range(48, 96), 48)}, size=50, **PLAIN)
    look = story.observation("DATA003")
    assert look.state is FLAGGED
    assert look.hits[0].details["shared"] == 3


TELLS_RANK_0 = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(model)
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
for epoch in range(3):
    if dist.get_rank() == 0:
        loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def test_ranks_that_are_told_different_epochs(tell: Any) -> None:
    story = tell.Story()
    story.text = TELLS_RANK_0
    for epoch in range(3):
        drawn = {0: tell.strided(96, 2, epoch)[0], 1: tell.strided(96, 2, 0)[1]}
        story.epoch(drawn, site=tell.site(5), sampler_epoch=epoch)
        rank = story.ranks[1]
        rank.fields["passes"] = [tell.replace(p, sampler_epoch=0) for p in rank.fields["passes"]]
    (hit,) = story.observation("DATA003").hits
    assert "told different epochs" in hit.message
    assert "same seed" not in hit.hint
    assert "on every rank" in hit.hint
    assert hit.where[0].line == 8


# ---- DATA004 -----------------------------------------------------------------------------------------------------


def test_a_sampler_for_more_ranks_than_there_are(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        shards = tell.strided(96, 4, epoch)
        story.epoch({0: shards[0], 1: shards[1]}, num_replicas=4)
    look = story.observation("DATA004")
    assert look.state is FLAGGED
    assert "48 of 96 training samples" in look.hits[0].message
    assert "divides among 4 ranks, but 2 trained" in look.hits[0].message
    assert story.observation("DATA003").state is CLEAN


def test_an_epoch_of_which_what_was_left_never_comes(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        shards = tell.strided(96, 2, epoch)
        story.epoch({r: s[:16] for r, s in shards.items()}, exhausted=False)
        # The loader of the rest skips twice what had been drawn.
        story.epoch({r: s[32:] for r, s in shards.items()}, name="rest")
    look = story.observation("DATA004")
    assert look.state is FLAGGED
    assert "64 of 96 training samples" in look.hits[0].message


def test_a_part_of_each_order_is_no_epoch_with_the_part_of_another(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(4):
        shards = tell.strided(96, 4, epoch)
        story.epoch({0: shards[0], 1: shards[1]}, num_replicas=4, exhausted=epoch % 2 > 0)
    assert story.observation("DATA004").state is FLAGGED


def test_slices_that_do_not_reach_the_end(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        rng = random.Random(epoch)
        story.epoch({r: rng.sample(range(30 * r, 30 * r + 30), 30) for r in range(2)}, size=30, **PLAIN)
    look = story.observation("DATA004")
    assert look.state is FLAGGED
    assert "36 were never drawn" in look.hits[0].message


def test_shares_that_the_sampler_divides_once_more(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(2):
        rng = random.Random(epoch)
        # Rank r holds the samples r, r + 2, …, and draws another half of them each epoch.
        story.epoch({r: rng.sample(range(r, 96, 2), 24) for r in range(2)}, size=48, num_replicas=2)
    look = story.observation("DATA004")
    assert look.state is FLAGGED
    assert "48 of 96 training samples" in look.hits[0].message


# ---- DATA005 -----------------------------------------------------------------------------------------------------


DEALT = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(net)


def block(total):
    return range(rank, total, world)


for step in block(7):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
dist.barrier()
"""


def dealt_out(tell: Any, *steps: int) -> Any:
    story = tell.Story()
    story.text = DEALT
    for rank, number in enumerate(steps):
        for _ in range(number):
            story.step(rank, (1.0, 1.0, 1.0))
    return story


def test_rounds_that_are_dealt_out_unequally(tell: Any) -> None:
    story = dealt_out(tell, 3, 3)
    story.wait(0, "DDP gradient all-reduce", 16)
    story.wait(1, "barrier", 18)
    (hit,) = story.observation("DATA005").hits
    assert "`block(7)`: it was over after 3 steps on rank 1, and rank 0 went into step 4" in hit.message
    assert hit.where[0].line == 14


def test_rounds_that_all_ranks_are_in_say_nothing_of_their_number(tell: Any) -> None:
    story = dealt_out(tell, 3, 3)
    story.wait(0, "DDP gradient all-reduce", 16)
    story.wait(1, "DDP buffer broadcast", 16)
    assert story.observation("DATA005").state is UNSEEN


def test_unequal_slices_end_in_a_deadlock(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.epoch({0: range(40), 1: range(40, 48)}, size=48, exhausted={0: None, 1: True}, **PLAIN)
    story.wait(0, "DDP gradient all-reduce", 24)
    story.wait(1, "barrier", 50)
    look = story.observation("DATA005")
    assert look.state is FLAGGED
    assert "5 on rank 0 and 1 on rank 1" in look.hits[0].message
    assert "Rank 1 has left its loop" in look.hits[0].message


def test_a_deadlock_in_a_batch_that_was_not_told_any_more(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.epoch({0: range(40), 1: range(40, 80)}, size=48, exhausted={0: None, 1: True}, **PLAIN)
    story.wait(0, "DDP buffer broadcast", 24)
    story.wait(1, "all_reduce", 50)
    look = story.observation("DATA005")
    assert look.state is FLAGGED
    assert "6 on rank 0 and 5 on rank 1" in look.hits[0].message


def test_a_deadlock_after_equal_epochs_has_another_reason(tell: Any) -> None:
    story = tell.honest()
    story.wait(0, "all_reduce", 60)
    story.wait(1, "broadcast", 61)
    look = story.observation("DATA005")
    assert look.state is CLEAN
    assert "2 complete epochs" in look.reason


def test_unequal_steps_in_a_completed_run(tell: Any) -> None:
    story = tell.Story()
    story.epoch({0: range(56), 1: range(56, 96)}, size=48, **PLAIN)
    look = story.observation("DATA005")
    assert look.state is FLAGGED
    assert look.hits[0].severity in (None, Severity.ERROR)


def test_a_loop_that_one_rank_leaves_early(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    story.epoch({0: shards[0], 1: shards[1][:24]}, exhausted={0: True, 1: False})
    assert story.observation("DATA005").state is FLAGGED
