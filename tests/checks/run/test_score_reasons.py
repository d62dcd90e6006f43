"""Which change explains a score, in which words, at which line; and when nothing is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.checks.run.metrics.score_reasons import reason_of
from grader.model.evaluation import Change, Evaluation, OtherScore, ReportedMetrics
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.metric import ACCURACY, Direction
from grader.model.trace import Params

FIXTURES = Path(__file__).parents[1] / "fixtures"
N = 500
OWN = OtherScore(Change.NOTHING, "the task's own way", 0.1, N, -1.0, 1.0)


def evaluation(*changed: OtherScore, reported: tuple[float, ...] = (), own: OtherScore = OWN) -> Evaluation:
    epochs = tuple({"val_accuracy": value} for value in reported)
    return Evaluation(
        None,
        artifact="model.pt",
        hidden={"accuracy": own.value},
        validation={"accuracy": own.value},
        num_hidden=900,
        num_validation=1000,
        reported=ReportedMetrics(epochs) if epochs else None,
        others=(own, *changed),
    )


def without_normalisation(accuracy: float) -> OtherScore:
    return OtherScore(Change.RANGE, "no normalisation", accuracy, N, 0.0, 1.0)


def in_training_mode(accuracy: float) -> OtherScore:
    return OtherScore(Change.MODE, "training mode", accuracy, N, -1.0, 1.0)


def chosen(found: Evaluation) -> Change | None:
    reason = reason_of(found, (ACCURACY,))
    return reason.other.change if reason is not None else None


def test_without_a_report_a_clear_margin_decides() -> None:
    assert chosen(evaluation(without_normalisation(0.5))) is None
    assert chosen(evaluation(without_normalisation(0.56))) is Change.RANGE
    own = OtherScore(Change.NOTHING, "the task's own way", 0.7, N, -1.0, 1.0)
    assert chosen(evaluation(without_normalisation(0.9), own=own)) is None
    assert chosen(evaluation()) is None
    assert reason_of(Evaluation(None), (ACCURACY,)) is None
    assert reason_of(None, (ACCURACY,)) is None


def test_without_a_report_a_range_that_the_text_writes_out_takes_a_smaller_margin(tell: Any) -> None:
    own = OtherScore(Change.NOTHING, "the task's own way", 0.88, N, 0.0, 1.0)
    other = OtherScore(Change.RANGE, "those of these images", 0.96, N, -0.935, 2.163)
    for written, state in (
        ("(0.286,), (0.353,)", State.CONTRADICTED),
        ("(0.5,), (0.5,)", State.NOT_OBSERVABLE),
    ):
        story = tell.honest()
        story.text = SCRIPT.format(f"transforms.Normalize({written})")
        story.evaluation = evaluation(other, own=own)
        assert story.observation("EVAL011").state is state


def test_training_mode_hides_how_images_are_prepared_and_comes_second() -> None:
    for reported in ((), (0.97,)):
        both = evaluation(in_training_mode(0.98), without_normalisation(0.96), reported=reported)
        assert chosen(both) is Change.RANGE
        assert chosen(evaluation(in_training_mode(0.97), without_normalisation(0.8))) is Change.MODE


def test_with_a_report_the_change_must_come_near_to_it() -> None:
    assert chosen(evaluation(without_normalisation(0.9), reported=(0.5, 0.98))) is Change.RANGE
    assert chosen(evaluation(without_normalisation(0.6), reported=(0.5, 0.98))) is None
    # The best epoch may be the one that was saved.
    assert chosen(evaluation(without_normalisation(0.9), reported=(0.91, 0.4))) is Change.RANGE


def test_a_report_that_is_too_low_is_not_explained_by_a_worse_preparation() -> None:
    own = OtherScore(Change.NOTHING, "the task's own way", 0.98, N, -1.0, 1.0)
    assert chosen(evaluation(without_normalisation(0.49), reported=(0.49,), own=own)) is None
    assert chosen(evaluation(in_training_mode(0.955), reported=(0.95,), own=own)) is Change.MODE
    assert chosen(evaluation(in_training_mode(0.6), reported=(0.5,), own=own)) is None


SCRIPT = "from torchvision import transforms\n\ntransform = {}\n"


@pytest.mark.parametrize(
    ("written", "line", "hint"),
    [
        ("transforms.ToTensor()", 3, "transforms.Normalize((0.5,), (0.5,))"),
        ("transforms.Normalize((0.0,), (1.0,))", 3, "transforms.Normalize((0.5,), (0.5,))"),
        ("transforms.Normalize(mean=[0.1307], std=[0.3081])", 3, "transforms.Normalize((0.5,), (0.5,))"),
        ("images.float() / 255", 3, "`(images.float() / 255 - 0.5) / 0.5`"),
        ("images.float().div(255)", 3, "`(images.float() / 255 - 0.5) / 0.5`"),
        ("images.float()", 3, "`(images.float() / 255 - 0.5) / 0.5`"),
        # What is not written out may be anything.
        ("transforms.Normalize(mean, deviation)", 3, "transforms.Normalize((0.5,), (0.5,))"),
    ],
)
def test_the_line_that_prepares_images_is_named(tell: Any, written: str, line: int, hint: str) -> None:
    story = tell.honest()
    story.text = SCRIPT.format(written)
    story.evaluation = evaluation(without_normalisation(0.98), reported=(0.98,))
    look = story.observation("EVAL011")
    (hit,) = look.hits
    assert look.state is State.CONTRADICTED
    assert [place.line for place in hit.where] == ([line] if line else [])
    assert (
        "On images from 0 to 1 (no normalisation) the accuracy of the same weights is 0.980 on 500"
        in hit.message
    )
    assert "0.100 on images from -1 to 1" in hit.message
    assert "The script reports 0.980." in hit.message
    assert hint in hit.hint
    assert story.observation("EVAL007").state is State.VERIFIED


COMPUTED = """import torch.distributed as dist
from torchvision import transforms

unused = transforms.Normalize((0.5,), (0.5,))
raw = images.data{share} / 255
normalise = transforms.Normalize(raw.mean().item(), raw.std().item())
"""
OWN_SHARE = COMPUTED.format(share="[dist.get_rank() :: dist.get_world_size()]")


def scored_in_part(text: str, tell: Any, *changed: OtherScore, reported: float = 0.98) -> Any:
    """A script whose weights score 0.9 on images as the task prepares them."""
    story = tell.honest()
    story.text = text
    own = OtherScore(Change.NOTHING, "the task's own way", 0.9, N, -1.0, 1.0)
    story.evaluation = evaluation(*changed, reported=(reported,), own=own)
    return story


@pytest.mark.parametrize("changed", [(in_training_mode(0.98),), (without_normalisation(0.2),)])
def test_numbers_of_a_rank_s_own_samples_come_before_training_mode(
    tell: Any, changed: tuple[OtherScore, ...]
) -> None:
    story = scored_in_part(OWN_SHARE, tell, *changed)
    (hit,) = story.observation("EVAL011").hits
    assert [place.line for place in hit.where] == [6, 5]
    assert "computed from a rank's own samples (`train.py:5`)" in hit.message
    assert "the accuracy of the saved weights is 0.900. The script reports 0.980." in hit.message
    assert "transforms.Normalize((0.5,), (0.5,))" in hit.hint
    assert hit.severity is None
    assert story.observation("EVAL007").state is State.VERIFIED


def test_numbers_of_the_whole_set_are_not_the_task_s_either(tell: Any) -> None:
    story = scored_in_part(COMPUTED.format(share=""), tell, in_training_mode(0.98))
    (hit,) = story.observation("EVAL011").hits
    assert [place.line for place in hit.where] == [6]
    assert "rank's own" not in hit.message


def test_a_report_that_holds_clears_numbers_that_the_script_computes(tell: Any) -> None:
    look = scored_in_part(OWN_SHARE, tell, in_training_mode(0.98), reported=0.9).observation("EVAL011")
    assert not look.hits


def test_a_text_that_normalises_as_the_task_does_is_not_accused(tell: Any) -> None:
    story = tell.honest()
    story.text = SCRIPT.format(
        "transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])"
    )
    story.evaluation = evaluation(without_normalisation(0.98), in_training_mode(0.9), reported=(0.98,))
    assert story.observation("EVAL011").state is State.NOT_OBSERVABLE
    assert "In training mode" in story.observation("EVAL007").hits[0].message
    # With two different ones it is either.
    story.text += "other = transforms.Normalize((0.0,), (1.0,))\n"
    assert [place.line for place in story.observation("EVAL011").hits[0].where] == [4]


def test_a_task_that_normalises_nothing(tell: Any) -> None:
    story = tell.honest()
    story.text = SCRIPT.format("transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])")
    own = OtherScore(Change.NOTHING, "the task's own way", 0.1, N, 0.0, 1.0)
    other = OtherScore(Change.RANGE, "a mean and a standard deviation of 0.5", 0.98, N, -1.0, 1.0)
    story.evaluation = evaluation(other, own=own)
    (hit,) = story.observation("EVAL011").hits
    assert "`transforms.ToTensor()` with no `Normalize` behind it" in hit.hint
    assert "transforms.Normalize(0.5, 0.5)" in hit.message


def test_what_brings_little_is_a_hint(tell: Any) -> None:
    story = tell.honest()
    own = OtherScore(Change.NOTHING, "the task's own way", 0.9, N, -1.0, 1.0)
    story.evaluation = evaluation(without_normalisation(0.95), reported=(0.95,), own=own)
    assert story.observation("EVAL011").hits[0].severity is Severity.HINT
    turned = OtherScore(Change.LAYOUT, "rows for columns", 0.95, N)
    story.evaluation = evaluation(turned, reported=(0.95,), own=own)
    assert "neither turned over nor inverted" in story.observation("EVAL011").hits[0].hint


def test_a_measure_that_agrees_shows_that_images_are_prepared_alike(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = evaluation(reported=(0.1,))
    assert story.observation("EVAL011").state is State.VERIFIED
    story.evaluation = evaluation()
    assert story.observation("EVAL011").state is State.NOT_OBSERVABLE
    story.evaluation = None
    assert story.observation("EVAL011").state is State.NOT_OBSERVABLE


def test_a_report_is_told_why_it_differs(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = evaluation(in_training_mode(0.96), reported=(0.97,))
    (hit,) = story.observation("EVAL007").hits
    assert "each batch's own statistics, the accuracy of the same weights is 0.960" in hit.message
    assert hit.hint.startswith("Call `model.eval()`")
    older = OtherScore(Change.WEIGHTS, "epoch_9.pt", 0.97, N, -1.0, 1.0)
    story.evaluation = evaluation(older, reported=(0.97,))
    (hit,) = story.observation("EVAL007").hits
    assert "With the weights in `epoch_9.pt` the accuracy is 0.970 on 500 validation samples" in hit.message
    assert hit.hint.startswith("Overwrite the file")


AVERAGED = """import copy
import torch

model = build_model()
average = copy.deepcopy(model)
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
    for a, p in zip(average.parameters(), model.parameters()):
        a.data.lerp_(p.data, 0.1)
torch.save(average.state_dict(), "model.pt")
"""
KEPT = """import torch

model = build_model()
for epoch in range(9):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
    if validate(model) > best:
        best_state = model.state_dict()
torch.save(best_state, "model.pt")
"""


def validated_in_evaluation_mode(tell: Any, text: str, **saved: bool) -> Any:
    story = tell.honest()
    story.text = text
    sums = (1.5, 2.5)
    story.evaluation = replace(evaluation(in_training_mode(0.96), reported=(0.97,)), sums=sums)
    for rank in story.ranks:
        told = rank.fields["others"]
        rank.fields["others"] = [replace(e, fields={**e.fields, "training_mode": False}) for e in told]
    story.save(0, "model.pt", sums=sums)
    written = story.ranks[0].fields["saves"]
    written[-1] = replace(written[-1], **saved)
    return story


def test_who_validates_in_evaluation_mode_is_not_told_to(tell: Any) -> None:
    (hit,) = validated_in_evaluation_mode(tell, AVERAGED).observation("EVAL007").hits
    assert "did validate in evaluation mode" in hit.message
    assert "model.eval()" not in hit.hint


def test_an_average_of_parameters_alone_has_the_statistics_of_a_new_network(tell: Any) -> None:
    (hit,) = validated_in_evaluation_mode(tell, AVERAGED, untracked=True).observation("EVAL007").hits
    assert "`num_batches_tracked` is 0" in hit.message
    assert "`for a, b in zip(average.buffers(), model.buffers()): a.copy_(b)`" in hit.hint
    assert hit.where[0].line == 9


def test_weights_kept_without_a_copy_are_no_second_fault(tell: Any) -> None:
    look = validated_in_evaluation_mode(tell, KEPT, live=True).observation("EVAL007")
    assert look.state is State.VERIFIED
    assert "`train.py:9` kept no copy" in look.reason
    assert validated_in_evaluation_mode(tell, KEPT).observation("EVAL007").state is State.CONTRADICTED


def test_a_curve_of_replicas_that_differ_is_no_second_fault(tell: Any) -> None:
    story = tell.honest()
    story.evaluation = evaluation(in_training_mode(0.96), reported=(0.97,))
    for rank in story.ranks:
        rank.add("params", Params(0, tell.names, (1.0 + rank.rank, 2.0, 3.0), rank.tick()))
    assert story.observation("EVAL007").state is State.VERIFIED
    assert story.observation("GRAD007").state is State.CONTRADICTED


def test_a_metric_that_is_better_when_it_is_less_is_explained_by_what_lowers_it(tell: Any) -> None:
    errors = replace(ACCURACY, name="mse", title="mean squared error", direction=Direction.MIN, share=False)
    own = OtherScore(Change.NOTHING, "the task's own way", 1.2, 0, metric="mse")
    better, worse = (
        OtherScore(Change.WEIGHTS, "epoch_9.pt", value, 0, metric="mse") for value in (0.42, 1.9)
    )
    found = Evaluation(None, artifact="model.pt", hidden={"mse": 1.2}, validation={"mse": 1.2})
    told = replace(found, reported=ReportedMetrics(({"val_accuracy": 0.4},)))
    reason = reason_of(replace(told, others=(own, worse, better)), (errors,))
    assert reason is not None
    assert reason.sentence == (
        "With the weights in `epoch_9.pt` the mean squared error is 0.420, and with those in `model.pt`, which are "
        "scored, 1.200."
    )
    assert reason_of(replace(told, others=(own, worse)), (errors,)) is None
    assert reason_of(replace(found, others=(own, better)), (errors,)) is None, (
        "nothing says how much is right"
    )


@pytest.mark.parametrize("anew", [True, False])
def test_validation_images_that_are_other_ones_each_time(tell: Any, anew: bool) -> None:
    story = tell.Story()
    story.text = (FIXTURES / "EVAL011/flagged_augmented_validation.py").read_text()
    story.group()
    story.epoch(tell.strided(96, 2))
    for number in range(2):
        story.validate({0: range(8)}, reduce="all_reduce")
        loader = story.ranks[0].loaders["validation"]
        hashes = [f"{index}{number * anew}" for index in range(8)]
        story.ranks[0].event("evaluated", 30, hashes=hashes, loader=loader.id, n=0, **{"pass": number})
    (hit,) = story.observation("EVAL011").hits
    assert "draws at random, `transforms.RandomCrop(28, padding=2)`" in hit.message
    assert ("In this run 8 indices brought other numbers the next time." in hit.message) is anew
    assert hit.severity is Severity.HINT
