"""EVAL rules over runs: how validation was divided, put together and reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.model.drawn_data import Batch, Pass
from grader.model.evaluation import ComparedPictures, ComparedText, Evaluation, ReportedMetrics
from grader.model.finding import EvidenceKind, Severity
from grader.model.grade import State
from grader.model.run import Ending

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE


def trained(tell: Any, num_validation: int = 30) -> Any:
    story = tell.Story(num_validation=num_validation)
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    return story


def scored(accuracy: float, *reported: float, **more: Any) -> Evaluation:
    epochs = tuple({"val_accuracy": value} for value in reported)
    return Evaluation(
        None,
        artifact="model.pt",
        validation={"accuracy": accuracy},
        num_validation=200,
        reported=ReportedMetrics(epochs) if reported else None,
        **more,
    )


# ---- EVAL001 -----------------------------------------------------------------------------------------------------


def test_shards_that_nobody_puts_together(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False))
    look = story.observation("EVAL001")
    assert look.state is FLAGGED
    assert "rank 0: 15, rank 1: 15 of 30 samples" in look.hits[0].message
    assert look.hits[0].where[0].line == 12


def test_a_run_that_stopped_before_it_could_put_the_first_shards_together(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False))
    story.ending = Ending.DEADLOCKED
    assert story.observation("EVAL001").state is UNSEEN
    # A second validation shows that the first was over, and nobody had put it together.
    story.epoch(tell.strided(96, 2, 1))
    story.validate(tell.strided(30, 2, shuffle=False))
    assert story.observation("EVAL001").state is FLAGGED


def test_the_gradients_that_a_script_averages_by_hand_are_no_metric(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False))
    for rank in range(2):
        story.epoch({rank: tell.strided(96, 2, 1)[rank]})
        story.collective(rank, "all_reduce", 24)
        story.step(rank, (1.0, 2.0, 3.0))
    assert story.observation("EVAL001").state is FLAGGED


def test_a_barrier_brings_no_numbers_together(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="barrier")
    assert story.observation("EVAL001").state is FLAGGED


def test_slices_per_rank_that_nobody_puts_together(tell: Any) -> None:
    story = trained(tell)
    shards = tell.strided(30, 2, shuffle=False, pad=False)
    story.validate(shards, size=15, sampler="SequentialSampler", num_replicas=None, sampler_rank=None)
    assert story.observation("EVAL001").state is FLAGGED


def test_counts_reduced_after_the_pass(tell: Any) -> None:
    look = tell.honest().observation("EVAL001")
    assert look.state is CLEAN
    assert "`all_reduce` at `train.py:33`" in look.reason


def test_predictions_gathered_as_objects(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_gather_object")
    assert story.observation("EVAL001").state is CLEAN


def test_messages_from_rank_to_rank_in_one_batch(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="batch_isend_irecv")
    assert story.observation("EVAL001").state is CLEAN


IN_TURN = "import torch.distributed as dist\nfor r in range(2):\n    dist.broadcast(boxes[r], src=r)\n"


@pytest.mark.parametrize(("turns", "state"), [(2, CLEAN), (1, FLAGGED)])
def test_a_broadcast_of_each_rank_in_its_turn(tell: Any, turns: int, state: State) -> None:
    story = trained(tell)
    story.text = IN_TURN
    story.validate(tell.strided(30, 2, shuffle=False))
    for rank in range(2):
        for _ in range(turns):
            story.collective(rank, "broadcast", 3)
    assert story.observation("EVAL001").state is state


def test_broadcasts_of_rank_0_bring_nothing_together(tell: Any) -> None:
    story = trained(tell)
    story.text = IN_TURN.replace("src=r", "src=0")
    story.validate(tell.strided(30, 2, shuffle=False))
    for rank in range(2):
        story.collective(rank, "broadcast", 3)
        story.collective(rank, "broadcast", 3)
    assert story.observation("EVAL001").state is FLAGGED


ON_DISK = """import json
import torch.distributed as dist
rank, world = dist.get_rank(), dist.get_world_size()
json.dump(counts, open(f"part_{rank}.json", "w"))
dist.barrier()
parts = [json.load(open(f"part_{r}.json")) for r in range(world)]
"""


def on_disk(tell: Any, text: str, *, meet: bool = True, paths: str = "part_{}.json") -> Any:
    story = trained(tell)
    story.text = text
    story.validate(tell.strided(30, 2, shuffle=False))
    for rank in range(2):
        story.write(rank, paths.format(rank), line=4)
        if meet:
            story.collective(rank, "barrier", 5)
    return story.observation("EVAL001")


def test_a_file_of_each_rank_that_one_reads_after_a_barrier(tell: Any) -> None:
    look = on_disk(tell, ON_DISK)
    assert look.state is CLEAN
    assert "in the files that `train.py:4` writes" in look.reason


def test_files_that_nobody_reads_or_waits_for_or_that_are_one(tell: Any) -> None:
    assert on_disk(tell, ON_DISK.replace('f"part_{r}.json"', '"part_0.json"')).state is FLAGGED
    assert on_disk(tell, ON_DISK, meet=False).state is FLAGGED
    assert on_disk(tell, ON_DISK, paths="part.json").state is FLAGGED


WAITING = """import json
import time
import torch.distributed as dist
rank, world = dist.get_rank(), dist.get_world_size()
for epoch in range(2):
    (out / f"{epoch}-{rank}.json").write_text("{}")
    for r in range(world if rank == 0 else 0):
        part = out / f"{epoch}-{r}.json"
        while not part.exists():
            time.sleep(0.01)
        parts.append(json.loads(part.read_text()))
"""


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("{epoch}-{rank}.json", CLEAN),
        ("{rank}.json", FLAGGED),  # that of the epoch before is there already
    ],
)
def test_files_that_one_rank_waits_for(tell: Any, name: str, state: State) -> None:
    story = trained(tell)
    story.text = WAITING.replace("{epoch}-{r", name.partition("{rank")[0] + "{r")
    for epoch in range(2):
        story.validate(tell.strided(30, 2, shuffle=False))
        for rank in range(2):
            story.write(rank, name.format(epoch=epoch, rank=rank), line=6)
        story.epoch(tell.strided(96, 2, epoch))
    assert story.observation("EVAL001").state is state


def test_files_that_are_read_before_they_are_there_for_certain(tell: Any) -> None:
    text = """import json
import torch.distributed as dist

(out / f"part_{rank}.json").write_text("{}")
if rank == 0:
    parts = [json.loads((out / f"part_{r}.json").read_text()) for r in range(world_size)]
"""
    look = on_disk(tell, "rank, world_size = dist.get_rank(), dist.get_world_size()\n" + text, meet=False)
    (hit,) = look.hits
    assert (
        "`train.py:7` reads the files of all ranks, which each of them writes at `train.py:5`" in hit.message
    )
    assert "no reduction or gathering" not in hit.message
    assert "dist.barrier()" in hit.hint


def test_counts_reduced_once_when_training_is_over(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False))
    story.epoch(tell.strided(96, 2, 1))
    story.validate(tell.strided(30, 2, shuffle=False), reduce="reduce")
    assert story.observation("EVAL001").state is CLEAN


def test_the_whole_set_on_rank_0_alone(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(30)}, num_replicas=None)
    assert story.observation("EVAL001").state is CLEAN


def test_the_whole_set_on_every_rank(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(30), 1: range(30)}, num_replicas=None)
    assert story.observation("EVAL001").state is CLEAN


def test_the_same_part_on_every_rank_needs_no_reduction(tell: Any) -> None:
    # 16 of 30 samples, the same ones: an incomplete batch is dropped, and nothing is divided.
    story = trained(tell)
    story.validate({0: range(16), 1: range(16)}, batch=16, num_replicas=None, drop_last=True)
    look = story.observation("EVAL001")
    assert look.state is CLEAN
    assert "Ranks 0 and 1 validated on the same 16 samples" in look.reason
    whole = story.observation("EVAL004")
    assert whole.state is FLAGGED
    assert "the same part of the validation set (16 of 30 samples)" in whole.hits[0].message
    assert story.observation("EVAL003").hits[0].details == {"missing": 14, "expected": 30}


def test_as_many_samples_as_that_but_other_ones_on_each_rank_are_shares(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(28), 1: range(28, 30)}, num_replicas=None)
    look = story.observation("EVAL001")
    assert look.state is FLAGGED
    assert "rank 0: 28, rank 1: 2 of 30 samples" in look.hits[0].message
    assert story.observation("EVAL004").state is not FLAGGED


def test_unequal_amounts_of_evaluation_without_a_collective(tell: Any) -> None:
    # Rank 1 looks at a few batches only, for its own log.
    story = trained(tell)
    story.validate({0: range(30)}, num_replicas=None)
    story.validate({1: range(8)}, exhausted=False, num_replicas=None)
    assert story.observation("EVAL001").state is CLEAN


def test_an_update_by_hand_that_the_evaluation_has_found_was_before_it(tell: Any) -> None:
    """Where weights change by hand, the model's next call finds it: the first one of an evaluation, too."""
    story = trained(tell)
    story.validate({0: range(15), 1: range(15, 30)}, num_replicas=None, reduce="all_reduce")
    for rank in story.ranks:
        begun = next(e.t for e in rank.fields["others"] if e.kind == "evaluation")
        rank.fields["steps"][-1] = replace(rank.fields["steps"][-1], t=begun - 1e-6)
    assert story.observation("EVAL001").state is CLEAN


def test_no_validation_at_all(tell: Any) -> None:
    story = trained(tell)
    assert {story.observation(c).state for c in ("EVAL001", "EVAL003")} == {UNSEEN}


def evaluate_by_hand(story: Any, rank: int, samples: int, reduce: str = "") -> None:
    story.ranks[rank].event("evaluation", 30, op="begin", num_samples=0)
    story.ranks[rank].event("evaluation", 30, op="end", num_samples=samples)
    if reduce:
        story.collective(rank, reduce, 33)


def test_batches_that_come_from_no_loader(tell: Any) -> None:
    story = trained(tell)
    for rank in range(2):
        evaluate_by_hand(story, rank, 15)
    look = story.observation("EVAL001")
    assert look.state is FLAGGED
    assert "rank 0: 15, rank 1: 15 of 30 samples" in look.hits[0].message
    assert look.hits[0].where[0].line == 30


def test_batches_that_come_from_no_loader_put_together(tell: Any) -> None:
    story = trained(tell)
    for rank in range(2):
        evaluate_by_hand(story, rank, 15, reduce="all_reduce")
    assert story.observation("EVAL001").state is CLEAN


def test_the_whole_set_in_several_loops_without_a_loader(tell: Any) -> None:
    story = trained(tell)
    evaluate_by_hand(story, 0, 20)
    evaluate_by_hand(story, 0, 10)
    assert story.observation("EVAL001").state is CLEAN


def test_a_look_at_a_few_samples_is_no_validation(tell: Any) -> None:
    story = trained(tell)
    for rank in range(2):
        evaluate_by_hand(story, rank, 4)
    assert story.observation("EVAL001").state is UNSEEN


# ---- EVAL003 -----------------------------------------------------------------------------------------------------


def test_padded_validation_is_a_hint(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False), reduce="all_reduce")
    look = story.observation("EVAL003")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.HINT
    assert "scored 32 samples of a validation set of 31: 1 sample was counted" in look.hits[0].message


def test_dropped_validation_is_a_warning(tell: Any) -> None:
    story = trained(tell)
    shards = tell.strided(30, 2, shuffle=False)
    story.validate({r: s[:8] for r, s in shards.items()}, reduce="all_reduce", drop_last=True)
    look = story.observation("EVAL003")
    assert look.hits[0].severity is Severity.WARNING
    assert "scored 16 of 30 validation samples: 14 were left out" in look.hits[0].message


def test_a_rest_that_each_rank_scores_by_a_loader_of_its_own(tell: Any) -> None:
    """As PyTorch's ImageNet example does; what is scored before the next epoch alone counts."""
    for rest, state in (((28, 29), CLEAN), ((28,), FLAGGED)):
        story = trained(tell)
        shares = {r: s[:14] for r, s in tell.strided(30, 2, shuffle=False).items()}
        story.validate(shares, reduce="all_reduce", drop_last=True)
        story.validate({0: rest, 1: rest}, name="rest", site=tell.site(40), num_replicas=None)
        assert story.observation("EVAL003").state is state


def left_out(tell: Any, lines: str, shards: dict[int, list[int]], **loader: Any) -> Any:
    """EVAL003's hit on a validation set of 30, with these lines around the loader, which stands in line 12."""
    story = trained(tell)
    story.text = "\n" * 10 + lines
    story.validate(shards, reduce="all_reduce", num_replicas=None, **loader)
    [hit] = story.observation("EVAL003").hits
    assert hit.severity is Severity.WARNING
    return hit


LOADER = "loader = torch.utils.data.DataLoader({}, batch_size=8{})\n"


def test_validation_drawn_with_replacement_is_no_dropped_batch(tell: Any) -> None:
    drawn = {0: [3, 9, 3, 14, 9, 22, 1, 3, 27, 14, 9, 5], 1: [8, 8, 2, 29, 17, 2, 11, 8, 29, 20, 2, 4]}
    text = "import torch; pick = torch.randint(len(val), (15,))\n"
    hit = left_out(tell, text + LOADER.format("torch.utils.data.Subset(val, pick)", ""), drawn)
    assert "drawn at random, with replacement: `train.py:11`, `torch.randint(len(val), (15,))`" in hit.message
    assert "`Subset(val, range(rank, len(val), world_size))`" in hit.hint
    assert "drop_last" not in hit.message + hit.hint
    assert [w.line for w in hit.where] == [11, 12]


def test_validation_drawn_by_each_rank_for_itself(tell: Any) -> None:
    drawn = {0: [3, 9, 14, 22, 1, 27, 5, 0, 29, 7], 1: [9, 8, 2, 29, 17, 22, 11, 20, 3, 4]}
    hit = left_out(tell, "import torch\n" + LOADER.format("val", ""), drawn)
    assert "drawn at random, by each rank for itself." in hit.message
    assert "drop_last" not in hit.message + hit.hint


def test_validation_shares_that_overlap(tell: Any) -> None:
    text = "import torch; from torch.utils.data import Subset; mine = range(rank * 8, rank * 8 + 14)\n"
    shards = {0: list(range(14)), 1: list(range(8, 22))}
    hit = left_out(tell, text + LOADER.format("Subset(val, mine)", ""), shards)
    assert "shares overlap instead, and 6 other draws" in hit.message
    assert "`train.py:11` cuts them with `range(rank * 8, rank * 8 + 14)`" in hit.message


def test_validation_shares_that_leave_a_piece_over(tell: Any) -> None:
    text = "import torch; mine = list(range(len(val)))[rank * 14:(rank + 1) * 14]\n"
    shards = {0: list(range(14)), 1: list(range(14, 28))}
    hit = left_out(tell, text + LOADER.format("torch.utils.data.Subset(val, mine)", ""), shards)
    assert "no rank was given them, samples 28 to 29, the end of the set" in hit.message
    assert "drop_last" not in hit.message + hit.hint
    assert hit.where[0].line == 11


def test_drop_last_is_named_where_it_stands(tell: Any) -> None:
    text = "import torch; sampler = torch.utils.data.DistributedSampler(val, drop_last=True)\n"
    shards = {0: list(range(0, 28, 2)), 1: list(range(1, 30, 2))}  # one less than there are
    hit = left_out(tell, text + LOADER.format("val", ", sampler=sampler"), shards)
    assert "Leave out `drop_last=True` at `train.py:11`" in hit.hint
    whole = {r: list(range(r, 30, 2))[:8] for r in range(2)}
    hit = left_out(tell, "import torch\n" + LOADER.format("val", ", drop_last=True"), whole, drop_last=True)
    assert "Leave out `drop_last=True` at `train.py:12`" in hit.hint


def test_drop_last_of_a_loader_that_a_library_builds(tell: Any) -> None:
    whole = {r: list(range(r, 30, 2))[:8] for r in range(2)}
    hit = left_out(tell, "import lib\nloader = lib.loader(val)\n", whole, drop_last=True)
    assert "Build the loader with `drop_last=False`" in hit.hint


def test_a_rest_that_rank_0_alone_scores(tell: Any) -> None:
    """By a loader of another line, or of the same one, which it keeps beside the loader of its share."""
    for line in (40, 12):
        story = trained(tell)
        shares = {r: s[:14] for r, s in tell.strided(30, 2, shuffle=False).items()}
        for _ in range(3):
            story.validate(shares, num_replicas=None)
            story.validate(
                {0: (28, 29)}, name="rest", site=tell.site(line), num_replicas=None, reduce="all_reduce"
            )
        assert story.observation("EVAL003").state is CLEAN, line


def test_a_whole_pass_that_drops_its_last_batch(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(24)}, num_replicas=None, drop_last=True)
    look = story.observation("EVAL003")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.WARNING


def test_the_same_share_on_every_rank_is_no_whole_set(tell: Any) -> None:
    """Ranks that all take themselves for rank 0; a set that is cut off from the training samples is whole as it is."""
    first = {rank: list(range(0, 30, 2)) for rank in range(2)}
    text = "import torch; from torch.utils.data import Subset; mine = range(rank, len(val), world_size)\n"
    hit = left_out(tell, text + LOADER.format("Subset(val, mine)", ""), first, size=15)
    assert "scored 15 of 30 validation samples: 15 were left out" in hit.message
    assert "the same part on ranks 0 and 1, cut out with `range(rank" in hit.message
    assert "what `dist.get_rank()` says after" in hit.hint
    story = trained(tell)
    story.validate(first, size=15, num_replicas=None)
    assert story.observation("EVAL004").state is UNSEEN
    story = trained(tell)
    story.validate(first, size=15, num_replicas=None, split="train")
    assert story.observation("EVAL003").state is CLEAN
    story = trained(tell)
    for start in (0, 1):
        half = range(start, 30, 2)
        story.validate(
            {0: half, 1: half}, name=f"half {start}", site=tell.site(40 + start), size=15, num_replicas=None
        )
    assert story.observation("EVAL003").state is not FLAGGED, "both halves of the set, one after the other"


def test_validation_divided_without_a_rest(tell: Any) -> None:
    assert tell.honest().observation("EVAL003").state is CLEAN


def test_unpadded_slices_of_unequal_length(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    shards = tell.strided(31, 2, shuffle=False, pad=False)
    story.validate(shards, sampler="StridedSampler", num_replicas=None, reduce="all_reduce")
    assert story.observation("EVAL003").state is CLEAN


def test_padding_that_was_cut_off_before_counting(tell: Any) -> None:
    # The reported accuracy is the trusted one to the last digit, which it could not be with one sample counted twice.
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False), reduce="all_gather")
    story.evaluation = scored(25 / 31, 25 / 31)
    assert story.observation("EVAL003").state is CLEAN


def test_the_whole_set_is_neither_padded_nor_dropped(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(30), 1: range(30)}, num_replicas=None)
    assert story.observation("EVAL003").state is CLEAN


# ---- what figures are counts out of ------------------------------------------------------------------------------


def test_figures_of_one_share_in_spite_of_a_reduction(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False, pad=False), num_replicas=None, reduce="all_reduce")
    story.evaluation = scored(0.5, 5 / 16, 7 / 16, 9 / 16, 29 / 31)
    look = story.observation("EVAL001")
    assert look.state is FLAGGED
    assert "3 reported figures are counts out of 16 samples" in look.hits[0].message


def test_a_share_above_one_is_told_as_what_it_is(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False, pad=False), num_replicas=None, reduce="all_reduce")
    story.evaluation = scored(0.9, 5 / 16, 7 / 16, 9 / 16, 29 / 31, 29 / 16)
    (hit,) = story.observation("EVAL001").hits
    assert "`val_accuracy` is reported as 1.812, and 1 is the most that a share can be" in hit.message
    assert "samples over all ranks" in hit.hint


@pytest.mark.parametrize(
    "figures",
    [
        (5 / 31, 7 / 31, 9 / 31),
        (0.312, 0.438, 0.562),
        (0.31234567, 0.43876543, 0.56234567),
        (5 / 16, 29 / 31, 30 / 31),
    ],
    ids=["of all", "rounded", "averaged", "one by chance"],
)
def test_figures_that_tell_nothing_against_a_reduction(tell: Any, figures: tuple[float, ...]) -> None:
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False, pad=False), num_replicas=None, reduce="all_reduce")
    story.evaluation = scored(0.5, *figures)
    assert story.observation("EVAL001").state is CLEAN


def test_shares_filled_up_to_whole_batches_are_a_warning(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    shards = {r: (*s, *s[:9]) for r, s in tell.strided(31, 2, shuffle=False, pad=False).items()}
    for epoch in (1, 2):
        story.validate(shards, sampler="StridedSampler", num_replicas=None, reduce="all_gather")
        story.epoch(tell.strided(96, 2, epoch))
    assert story.observation("EVAL003").hits[0].severity is Severity.WARNING
    # Counts out of 31 show that the repeated ones were cut off again.
    story.evaluation = scored(0.5, 20 / 31, 22 / 31, 25 / 31)
    assert story.observation("EVAL003").state is CLEAN


# ---- EVAL014 -----------------------------------------------------------------------------------------------------


def test_validation_on_samples_that_are_trained_on(tell: Any) -> None:
    story = trained(tell)
    story.validate(
        {0: range(0, 96, 2), 1: range(1, 96, 2)}, split="train", num_replicas=None, reduce="all_reduce"
    )
    look = story.observation("EVAL014")
    assert look.state is FLAGGED
    assert "96 samples of 96" in look.hits[0].message


def test_an_accuracy_on_training_samples_beside_a_validation(tell: Any) -> None:
    story = tell.honest()
    assert story.observation("EVAL014").state is CLEAN


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(160, 40), (160, 0)], FLAGGED),
        ([(100, 2), (100, 2)], FLAGGED),
        ([(160, 3), (160, 3)], CLEAN),
        ([(40, 3), (40, 0)], CLEAN),
        ([(160, 0), (160, 0)], CLEAN),
        ([], CLEAN),
    ],
)
def test_training_on_validation_samples_with_small_changes(
    tell: Any, counts: list[tuple[int, int]], expected: Any
) -> None:
    story = tell.honest()
    pictures = tuple(ComparedPictures(rank, *numbers) for rank, numbers in enumerate(counts))
    story.evaluation = scored(0.9, pictures=pictures)
    look = story.observation("EVAL014")
    assert look.state is expected
    if expected is FLAGGED:
        assert "are samples of the validation set, as they are or with small changes" in look.hits[0].message
        assert look.hits[0].ranks == tuple(rank for rank, (_, found) in enumerate(counts) if found)


def test_blends_with_validation_samples(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.9, pictures=(ComparedPictures(0, 160, 0, 9), ComparedPictures(1, 160, 1, 0)))
    look = story.observation("EVAL014")
    assert look.state is FLAGGED
    assert "10 are blends in which one of the validation set has a good part" in look.hits[0].message


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(3000, 900), (3000, 0)], FLAGGED),
        ([(3000, 20), (3000, 150)], CLEAN),
        ([(500, 190), (500, 0)], CLEAN),
        ([(0, 0)], CLEAN),
    ],
)
def test_training_on_passages_of_the_text_for_validation(
    tell: Any, counts: list[tuple[int, int]], expected: Any
) -> None:
    story = tell.honest()
    texts = tuple(ComparedText(rank, *numbers) for rank, numbers in enumerate(counts))
    story.evaluation = scored(0.9, texts=texts)
    look = story.observation("EVAL014")
    assert look.state is expected
    if expected is FLAGGED:
        assert "15% stand in passages of the text for validation" in look.hits[0].message
        assert look.hits[0].ranks == (0,)


def test_a_part_of_both_splits_that_is_set_aside(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(200, 230, 2), 1: range(201, 230, 2)}, split=None, reduce="all_reduce")
    story.evaluation = scored(0.9, pictures=(ComparedPictures(0, 160, 40), ComparedPictures(1, 160, 40)))
    assert story.observation("EVAL014").state is CLEAN


def test_validation_samples_that_are_exactly_those_are_told_as_such(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.9, pictures=(ComparedPictures(0, 160, 40), ComparedPictures(1, 160, 40)))
    hashes = [f"{n:016x}" for n in range(64)]
    story.feed(0, [hashes])
    story.ranks[0].event("evaluated", hashes=hashes, loader=0, n=0, **{"pass": 0})
    assert "to the last number" in story.observation("EVAL014").hits[0].message


# ---- EVAL007 -----------------------------------------------------------------------------------------------------


def test_a_forged_curve(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.11, 0.9, 0.95, 1.0)
    look = story.observation("EVAL007")
    assert look.state is FLAGGED
    assert look.evidence == (EvidenceKind.EVALUATION,)
    assert "accuracy of 1, but the saved weights score 0.1100" in look.hits[0].message


def test_a_curve_divided_by_the_wrong_count(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.82, 0.35, 0.41)
    assert story.observation("EVAL007").state is FLAGGED


COUNTED = """import torch
import torch.distributed as dist


def validate(net, loader):
    totals = torch.zeros(1)
    for images, labels in loader:
        totals += (net(images).argmax(1) == labels).sum()
    parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, totals)
    right = torch.cat(parts).sum()
    return right / (len(loader) * loader.batch_size)


def train(net, loader, val_loader):
    history = []
    for epoch in range(3):
        fit(net, loader)
        accuracy = validate(net.module, val_loader)
        history.append({"val_accuracy": accuracy.item(), "epoch": epoch})
    return history
"""


def test_a_contradicted_accuracy_is_told_with_the_lines_that_make_it(tell: Any) -> None:
    story = tell.honest()
    story.text = COUNTED
    story.evaluation = scored(0.82, 0.35, 0.41)
    (hit,) = story.observation("EVAL007").hits
    assert [place.line for place in hit.where] == [12, 11, 19]
    assert hit.hint.startswith("Count the samples that were scored")


COUNTS = "torch.cat(parts).sum()"


@pytest.mark.parametrize(
    ("old", "new", "line", "advice"),
    [
        (
            COUNTS,
            "(torch.cat(parts) == targets).sum()",
            11,
            "Count right predictions on each rank against the labels of its own batches",
        ),
        (
            "fit(net, loader)",
            "if rank == 0: ema.update(net)",
            19,
            "Let all ranks run `ema.update(net)` at `train.py:19`",
        ),
        (
            "fit(net, loader)",
            "if rank == 0:\n            for a, b in zip(net.module.parameters(), f):\n                a.lerp_(b, 1)",
            19,
            "Let all ranks run `for a, b in zip(ema.parameters(), f): …` at `train.py:20`",
        ),
        (COUNTS, "sum(parts)", 11, "Add up what is counted, and the samples, over all ranks"),
    ],
)
def test_what_the_text_shows_of_a_contradicted_accuracy(
    tell: Any, old: str, new: str, line: int, advice: str
) -> None:
    story = tell.honest()
    assert old in COUNTED
    text = COUNTED.replace("(len(loader) * loader.batch_size)", "239").replace(old, new)
    story.text = text.replace("net.module", "ema").replace(
        "    history", "    rank = dist.get_rank()\n    history", 1
    )
    story.evaluation = scored(0.82, 0.35, 0.41)
    (hit,) = story.observation("EVAL007").hits
    assert hit.hint.startswith(advice)
    assert line in [place.line for place in hit.where]


SLOTS = """import torch
import torch.distributed as dist
NEWLINES
def gathered(own):
    slots = [torch.zeros_like(own)] * dist.get_world_size()
    dist.all_gather(slots, own)  # line 33, as the run tells
    return torch.stack(slots).sum(dim=0)
"""


@pytest.mark.parametrize("own", [False, True])
def test_parts_that_are_gathered_into_one_tensor(tell: Any, own: bool) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_gather")
    story.text = SLOTS.replace("NEWLINES", "\n" * 27)
    if own:
        one = "[torch.zeros_like(own)] * dist.get_world_size()"
        story.text = story.text.replace(one, "[torch.zeros_like(own) for _ in range(dist.get_world_size())]")
    look = story.observation("EVAL001")
    assert look.state is (CLEAN if own else FLAGGED)
    if not own:
        (hit,) = look.hits
        assert "`all_gather` at `train.py:33` loses what it brings together" in hit.message
        assert hit.hint.startswith(
            "The slots that `train.py:32` makes are all one tensor. Make a tensor for each slot"
        )
        assert hit.fix is not None


GATHERED = """import numpy as np
import torch.distributed as dist
from sklearn import metrics


def predictions(net, loader):
    mine = np.concatenate([net(images).argmax(1).numpy() for images, _ in loader])
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    return np.concatenate(parts)


def targets(loader):
    mine = np.concatenate([labels.numpy() for _, labels in loader])
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    return np.concatenate(parts)


def validate(net, loader, labels):
    return {"val_accuracy": metrics.accuracy_score(labels, predictions(net, loader))}
"""


@pytest.mark.parametrize("labels", ["labels", "targets(loader)"])
@pytest.mark.parametrize("blocks", [False, True])
def test_shares_in_the_order_of_ranks_against_labels_in_the_data_set_s(
    tell: Any, labels: str, blocks: bool
) -> None:
    """Not where the labels were gathered in the same way, nor where shares are blocks of the data set."""
    story = tell.Story()
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    shares = {r: list(range(15 * r, 15 * r + 15) if blocks else range(r, 30, 2)) for r in range(2)}
    story.validate(shares, reduce="all_gather_object")
    story.text = GATHERED.replace("(labels,", f"({labels},")
    story.evaluation = scored(0.98, 0.1, 0.09, 0.1)
    (hit,) = story.observation("EVAL007").hits
    told = labels == "labels" and not blocks
    assert ("puts the ranks' shares one after the other" in hit.message) is told
    assert hit.hint.startswith("Count right predictions" if told else "Add up what is counted")
    assert not told or [place.line for place in hit.where][:2] == [10, 21]


METER = """import torch
from torch.utils.data import DataLoader


class Mean:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = self.count = 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n

    def compute(self):
        return self.sum / self.count


def main(net, val_set):
    val_loader = DataLoader(val_set)
    accuracy, right, seen = Mean(), 0, 0
    history = []
    for epoch in range(4):
        BEGIN
        net.eval()
        for images, labels in val_loader:
            hits = (net(images).argmax(1) == labels).float()
            accuracy.update(hits.mean(), len(labels))
            right += hits.sum()
            seen += len(labels)
        history.append({"val_accuracy": FIGURE})
"""


@pytest.mark.parametrize(
    ("figure", "begin", "advice"),
    [
        ("accuracy.compute()", "net.train()", "Call `accuracy.reset()` in the loop at `train.py:24`"),
        ("accuracy.compute()", "accuracy.reset()", ""),
        ("accuracy.compute()", "accuracy = Mean()", ""),
        (
            "(right / seen).item()",
            "net.train()",
            "Set `right` back to 0 in the loop",
        ),
        ("(right / seen).item()", "right = seen = 0", ""),
    ],
)
def test_a_meter_that_is_never_set_back(tell: Any, figure: str, begin: str, advice: str) -> None:
    story = tell.honest()
    story.text = METER.replace("FIGURE", figure).replace("BEGIN", begin)
    story.evaluation = scored(0.98, 0.1, 0.14, 0.2, 0.22)
    (hit,) = story.observation("EVAL007").hits
    assert hit.hint.startswith(advice or "Add up what is counted")
    assert ("nothing sets it back" in hit.message) is bool(advice)
    assert not advice or hit.where[0].line == 22


def test_a_mean_over_all_epochs_is_known_by_its_values(tell: Any) -> None:
    story = tell.honest()
    own = [0.3, 0.6, 0.9, 0.95, 0.97]
    story.evaluation = scored(0.97, *(sum(own[: n + 1]) / (n + 1) for n in range(5)))
    (hit,) = story.observation("EVAL007").hits
    assert "As a mean over all epochs so far the values fit" in hit.message
    assert "set it back to 0" in hit.hint


ADDED = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

SIZE = 8
loader = DataLoader(val_set, batch_size=SIZE)
net.eval()
totals = torch.zeros(2)
with torch.no_grad():
    for images, labels in loader:
        totals[0] += (net(images).argmax(1) == labels).sum()
        totals[1] += PER_BATCH
dist.all_reduce(totals)
history = [{"val_accuracy": (totals[0] / totals[1]).item()}]
"""


@pytest.mark.parametrize("counted", ["loader.batch_size", "SIZE"])
def test_full_batches_that_are_counted_one_by_one(tell: Any, counted: str) -> None:
    story = tell.honest()
    story.text = ADDED.replace("PER_BATCH", counted)
    story.evaluation = scored(0.82, 0.35, 0.41)
    (hit,) = story.observation("EVAL007").hits
    assert hit.where[0].line == 12
    assert hit.hint.startswith(f"Count the samples of each batch, `len(labels)` instead of `{counted}`")


def test_samples_that_are_counted_are_not_taken_for_full_batches(tell: Any) -> None:
    story = tell.honest()
    story.text = ADDED.replace("PER_BATCH", "len(labels)")
    story.evaluation = scored(0.82, 0.35, 0.41)
    (hit,) = story.observation("EVAL007").hits
    assert not hit.hint.startswith("Count the samples of each batch")


def test_the_best_epoch_was_saved(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.85, 0.7, 0.85, 0.8)
    look = story.observation("EVAL007")
    assert look.state is CLEAN
    assert "epoch 1" in look.reason


def test_autocast_moves_a_sample_or_two(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.82, 0.829)
    assert story.observation("EVAL007").state is CLEAN


def test_weights_of_an_epoch_that_is_neither_the_last_nor_the_best(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    story.save(0, "model.pt", line=41)
    for _ in range(2):
        story.epoch(tell.strided(96, 2))
        story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    story.evaluation = scored(0.5, 0.5, 0.8, 0.9, sums=(1.0, 2.0, 3.0))
    (hit,) = story.observation("EVAL007").hits
    assert (
        "`model.pt` holds the weights of epoch 0, the worst of 3 by the report: they score 0.5000"
        in hit.message
    )
    assert "`metrics.json` goes on to 0.9" in hit.message
    assert [place.line for place in hit.where] == [41]
    assert hit.severity is None
    story.evaluation = scored(0.87, 0.87, 0.89, 0.9, sums=(1.0, 2.0, 3.0))
    assert story.observation("EVAL007").hits[0].severity is Severity.HINT
    # Other files of the run say nothing of the weights that were scored.
    story.save(0, "last.pt", sums=(4.0, 5.0, 6.0))
    story.evaluation = scored(0.8, 0.5, 0.8, 0.9, sums=(1.0, 2.0, 3.0))
    assert "nothing that is reported" in story.observation("EVAL007").hits[0].message


CHOSEN = """import torch


def save(net):
    torch.save(net.state_dict(), "model.pt")


best = 0
for epoch in range(5):
    loss, accuracy = train(net)
    if {}:
        best = accuracy
        save(net)
"""


def older(tell: Any, test: str, accuracy: float, loss: float | None = None, **more: Any) -> Any:
    """Five epochs, of which the third was saved, in a run that scored this in the end."""
    story = tell.Story()
    story.group()
    story.text = CHOSEN.format(test)
    for epoch in range(5):
        story.epoch(tell.strided(96, 2))
        if epoch == 2:
            story.save(0, "model.pt", line=5)
    epochs = tuple({"val_accuracy": 0.5 + 0.1 * n, "val_loss": 1.5 - 0.3 * n} for n in range(5))
    validation = {"accuracy": accuracy} | ({"loss": loss} if loss is not None else {})
    story.evaluation = Evaluation(
        None,
        artifact="model.pt",
        validation=validation,
        num_validation=200,
        reported=ReportedMetrics(epochs),
        **more,
    )
    return story


def test_weights_that_one_condition_chose_are_told_with_it(tell: Any) -> None:
    (hit,) = older(tell, "epoch % 3 == 2", 0.7).observation("EVAL007").hits
    assert "holds the weights of epoch 2: they score" in hit.message
    assert [place.line for place in hit.where] == [11, 5]
    assert "write `epoch % 3 == 2 or epoch == 4` for `epoch % 3 == 2`" in hit.hint


@pytest.mark.parametrize(
    ("accuracy", "loss", "epoch"),
    [(0.5, 1.5, 0), (0.5, None, 0), (0.5, 2.3, None), (0.52, None, None), (0.6, 1.2, 1), (0.8, 0.6, None)],
)
def test_the_epoch_that_has_just_these_figures_is_the_saved_one(
    tell: Any, accuracy: float, loss: float | None, epoch: int | None
) -> None:
    """Unless it came after the file was written."""
    (hit,) = older(tell, "accuracy < best", accuracy, loss).observation("EVAL007").hits
    assert (f"holds the weights of epoch {epoch}" in hit.message) is (epoch is not None)
    assert ("the worst of 5 by the report" in hit.message) is (epoch == 0)
    assert ("Write `accuracy > best`" in hit.hint) is (epoch == 0)
    assert epoch != 0 or hit.where[0].line == 11


@pytest.mark.parametrize(("asked", "severity"), [(0.88, None), (0.83, Severity.HINT), (0.99, Severity.HINT)])
def test_older_weights_by_which_the_target_is_missed_are_no_hint(
    tell: Any, asked: float, severity: Severity | None
) -> None:
    story = older(tell, "epoch % 3 == 2", 0.7, hidden={"accuracy": 0.84})
    story.levels = {"accuracy": asked}
    nearly = tuple({"val_accuracy": value} for value in (0.5, 0.6, 0.85, 0.89, 0.89))
    story.evaluation = tell.replace(
        story.evaluation, validation={"accuracy": 0.85}, reported=ReportedMetrics(nearly)
    )
    (hit,) = story.observation("EVAL007").hits
    assert hit.severity is severity


FILLED_UP = """import torch
import torch.distributed as dist


def batches(x, size):
    yield from torch.nn.functional.pad(x, (0, -len(x) % size)).split(size)


def validate(model, x):
    counts = torch.zeros(2)
    for batch in batches(x, 16):
        counts += torch.stack([right(model(batch)), torch.tensor(len(batch))])
    dist.all_reduce(counts)
    return counts[0] / counts[1]


curve = {"val_accuracy": validate(model, x)}
"""


@pytest.mark.parametrize(
    ("figure", "told"), [(180 / 224, True), (187 / 224, True), (0.8047, False), (0.4, False)]
)
def test_samples_that_only_fill_up_shares_are_counted(tell: Any, figure: float, told: bool) -> None:
    story = trained(tell)
    story.text = FILLED_UP
    for rank in story.ranks:
        rank.event("evaluation", 12, op="begin")
        rank.event("evaluation", 12, op="end", num_samples=112)
    story.evaluation = scored(0.9, figure)
    (hit,) = story.observation("EVAL007").hits
    assert ("224 samples through the network, 24 more than there are" in hit.message) is told
    if told:
        assert f"{round(figure * 224)} right ones of all 224" in hit.message
        assert "(filled up at `train.py:6`)" in hit.message
        assert "mask" in hit.hint


def test_percentages_are_a_unit_not_a_lie(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.82, 82.0)
    assert story.observation("EVAL007").state is CLEAN


def test_answers_of_all_ranks_over_the_samples_of_one(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = scored(0.9, 0.4, 1.2, 1.8)
    (hit,) = story.observation("EVAL007").hits
    assert "2 times the 0.9000" in hit.message
    assert "divide by that number" in hit.hint
    # A curve that begins above 1 is written in percent all along.
    story.evaluation = scored(0.9, 40.0, 90.0)
    assert story.observation("EVAL007").state is CLEAN


def test_own_batchnorm_statistics_on_each_rank_widen_the_tolerance(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap(num_batchnorm=4)
    story.epoch(tell.strided(96, 2))
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    story.evaluation = scored(0.82, 0.845)
    assert story.observation("EVAL007").state is CLEAN


def test_nothing_reported_or_nothing_scored(tell: Any) -> None:
    story = tell.honest()
    assert story.observation("EVAL007").state is UNSEEN
    story.evaluation = scored(0.82)
    assert story.observation("EVAL007").state is UNSEEN


@pytest.mark.parametrize(("split", "state"), [("train", UNSEEN), ("validation", FLAGGED), (None, FLAGGED)])
def test_a_split_of_ones_own_is_another_figure(tell: Any, split: str | None, state: State) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce", split=split)
    story.evaluation = scored(0.99, 0.93)
    assert story.observation("EVAL007").state is state


SUMMED_TWICE = """import torch.distributed as dist


def validate(model, loader):
    sums = measure(model, loader)
    dist.all_reduce(sums)
    dist.all_reduce({again})
    return sums[0] / sums[1]
"""


@pytest.mark.parametrize(
    ("again", "said"), [("sums[0]", "Leave out `dist.all_reduce(sums[0])`"), ("own", "Reduce the sum")]
)
def test_a_loss_that_was_added_up_twice(tell: Any, again: str, said: str) -> None:
    story = tell.honest()
    story.text = SUMMED_TWICE.format(again=again)
    story.evaluation = Evaluation(
        None,
        artifact="model.pt",
        validation={"accuracy": 0.9, "loss": 0.25},
        num_validation=200,
        reported=ReportedMetrics(({"val_accuracy": 0.9, "val_loss": 0.5},)),
    )
    (hit,) = story.observation("EVAL007").hits
    assert hit.hint.startswith(said)
    assert again == "own" or hit.where[0].line == 7


@pytest.mark.parametrize(("loss", "said"), [(0.5, "2 times"), (0.125, "1/2 of"), (0.25, ""), (0.31, "")])
def test_a_loss_that_counts_the_ranks(tell: Any, loss: float, said: str) -> None:
    story = tell.honest()
    story.evaluation = Evaluation(
        None,
        artifact="model.pt",
        validation={"accuracy": 0.9, "loss": 0.25},
        num_validation=200,
        reported=ReportedMetrics(({"val_accuracy": 0.9, "val_loss": loss},)),
    )
    look = story.observation("EVAL007")
    assert look.state is (FLAGGED if said else CLEAN)
    assert not said or said in look.hits[0].message


def test_a_pass_that_trains_or_validates_is_named_where_it_divides(tell: Any) -> None:
    story = tell.honest()
    story.text = (
        "import torch\nimport torch.distributed as dist\n\n\ndef run(loader, train):\n    total, n = 0.0, 0\n"
        "    for x, y in loader:\n        loss = criterion(model(x), y)\n        if train:\n"
        "            loss.backward()\n            optimizer.step()\n        total += loss.item()\n        n += 1\n"
        "    total = added_up(total)\n    return total / n\n\n\nepochs.append({'val_loss': run(val_loader, False)})\n"
    )
    story.evaluation = Evaluation(
        None,
        artifact="model.pt",
        validation={"accuracy": 0.9, "loss": 0.25},
        num_validation=200,
        reported=ReportedMetrics(({"val_accuracy": 0.9, "val_loss": 0.5},)),
    )
    (hit,) = story.observation("EVAL007").hits
    assert hit.where[0].line == 15


CALLED = "for images, labels in loader:\n    logits = model(images)\n"


def curve(
    tell: Any,
    measured: Any,
    num_epochs: int = 6,
    *,
    drawn: bool = True,
    elsewhere: int = 0,
    text: str = CALLED,
) -> Any:
    """A run that tells another figure for each epoch, whose network went forward in validation in some of them."""
    story = tell.Story()
    story.text = text
    values = [0.5 + 0.05 * n for n in range(num_epochs)]
    for epoch in range(num_epochs):
        story.epoch(tell.strided(96, 2, epoch), sampler_epoch=epoch)
        for r in story.ranks:
            given, begun = measured(epoch), r.tick()
            if drawn:
                built = story.loader(r.rank, "validation", split="validation", shuffle=False)
                # Other indices than those that are trained on: a pass over these may let statistics settle.
                batch = tuple(range(96 + r.rank, 126, 2))
                r.add("batches", Batch(built.id, epoch, 0, len(batch), batch, 0.001, r.steps, r.tick()))
            if given:
                r.event("evaluation", 30, op="begin")
                r.event("evaluation", 30, op="end", num_samples=given)
            if drawn:
                built = r.loaders["validation"]
                r.add("passes", Pass(built.id, epoch, None, tell.site(29), begun, r.tick(), True))
    for r in story.ranks:
        r.event("end", elsewhere=elsewhere)
    told = ReportedMetrics(tuple({"val_accuracy": v, "val_loss": 1 - v} for v in values))
    story.evaluation = Evaluation(
        None, artifact="model.pt", validation={"accuracy": values[-1]}, reported=told
    )
    return story


@pytest.mark.parametrize(
    "story",
    [
        pytest.param({"measured": lambda epoch: 15 * (epoch == 0)}, id="once, and drawn ever after"),
        pytest.param(
            {"measured": lambda epoch: 15 if epoch > 3 else 1}, id="at the end, and one sample before"
        ),
        pytest.param(
            {"measured": lambda epoch: 15 * (epoch == 5), "drawn": False}, id="from tensors, at the end"
        ),
        pytest.param(
            {"measured": lambda epoch: 15 * (epoch == 0), "text": CALLED + "net.forward(images)\n"},
            id="on one line",
        ),
    ],
)
def test_figures_of_epochs_that_nothing_was_measured_for(tell: Any, story: dict[str, Any]) -> None:
    told = curve(tell, **story)
    (hit,) = told.observation("EVAL007").hits
    assert "reports 6 different figures of the validation data" in hit.message
    assert told.observation("EVAL003").state is State.NOT_REACHED


def test_figures_of_a_network_that_met_training_samples_alone(tell: Any) -> None:
    told = curve(tell, measured=lambda epoch: 0, drawn=False)
    (hit,) = told.observation("EVAL007").hits
    assert "given training samples alone: nothing was measured" in hit.message
    (held,) = told.observation("TRUST002").hits
    assert held.details["holds"]
    assert held.details["subjects"] == ["how the reported figures come about"]
    called = curve(tell, measured=lambda epoch: 0, drawn=False, text=CALLED + "net.forward(images)\n")
    assert called.observation("EVAL007").hits == (), "it may have gone forward unseen"


@pytest.mark.parametrize(
    "story",
    [
        pytest.param({"measured": lambda epoch: 15}, id="each epoch"),
        pytest.param({"measured": lambda epoch: 15 * (epoch > 0)}, id="one that nobody saw"),
        pytest.param({"measured": lambda epoch: 0}, id="in a way that nobody sees"),
        pytest.param({"measured": lambda epoch: 90 * (epoch == 5)}, id="all checkpoints at the end"),
        pytest.param(
            {"measured": lambda epoch: 15 * (epoch < 3), "elsewhere": 45}, id="averaged weights from then on"
        ),
        pytest.param({"measured": lambda epoch: 30}, id="each sample in two ways"),
        pytest.param(
            {
                "measured": lambda epoch: 15 * (epoch == 5),
                "drawn": False,
                "text": CALLED + "fast = torch.jit.script(model)\n",
            },
            id="compiled until the end",
        ),
    ],
)
def test_figures_that_may_all_be_measured(tell: Any, story: dict[str, Any]) -> None:
    told = curve(tell, **story)
    assert told.observation("EVAL007").state is CLEAN
    assert told.observation("EVAL003").state is CLEAN or not story.get("drawn", True)
