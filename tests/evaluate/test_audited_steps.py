"""Steps taken again say whose samples a gradient came of, whatever was done to it; what does not fit says nothing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader.evaluate.audit.audited_steps import audited
from grader.evaluate.audit.told_steps import told_by
from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest
from grader.idx import read_split
from tests.evaluate.tiny import write_split

NUM_TRAIN, SIZE, STRIDE = 400, 32, 3
LABELS = [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
EVALUATE = """\
from torch import nn

from grader.evaluate.classifier import accuracy_and_loss


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))


def evaluate(model, images, labels):
    return accuracy_and_loss(model, images.unsqueeze(1).float() / 255, labels)
"""


class Course:
    """The task, its training images, and a network in the middle of its training."""

    def __init__(self, folder: Path) -> None:
        raw = folder / "visible" / "FashionMNIST" / "raw"
        write_split(raw, NUM_TRAIN, 3, "train")
        (folder / "evaluate.py").write_text(EVALUATE)
        images, labels = read_split(raw, "train")
        self.images = torch.from_numpy(images.copy()).unsqueeze(1).float() / 255
        self.labels = torch.tensor(LABELS)[torch.from_numpy(labels.copy()).long()]
        torch.manual_seed(1)
        self.network = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10)
        )
        self.request = ScoringRequest(
            "score", str(folder / "evaluate.py"), str(folder / "visible"), "", "1", class_labels=LABELS
        )

    def gradients(self, images: Tensor, labels: Tensor, **options: Any) -> list[Tensor]:
        """Of the network's parameters."""
        self.network.zero_grad()
        F.cross_entropy(self.network(images), labels, **options).backward()
        return [p.grad.clone() for p in self.network.parameters() if p.grad is not None]

    def of(self, drawn: Sequence[int]) -> list[Tensor]:
        """Of the samples as they are."""
        return self.gradients(self.images[drawn], self.labels[drawn])

    def told(self, gradients: Sequence[Tensor], samples: Sequence[Any]) -> dict[str, Any]:
        """The step as a rank tells it."""
        named = dict(self.network.named_parameters())
        return {
            "n": 7,
            "by": 0,
            "stride": STRIDE,
            "names": [f"_orig_mod.{name}" for name in named],
            "weights": [[encoded(p.detach().reshape(-1).half())] for p in named.values()],
            "gradients": [encoded(one.reshape(-1)[::STRIDE].bfloat16()) for one in gradients],
            "samples": list(samples),
        }

    def audited(self, step: dict[str, Any]) -> dict[str, Any] | None:
        """What the scorer makes of it."""
        self.request.told_steps[:] = [step]
        found: list[dict[str, Any]] = audited(self.request, ScoringCache(), lambda _: None)["audited"]
        return found[0] if found else None


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("course"))


def encoded(tensor: Tensor) -> str:
    return base64.b64encode(tensor.contiguous().view(torch.uint8).numpy().tobytes()).decode()


def draw(num_ranks: int, size: int = SIZE) -> list[list[int]]:
    order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(num_ranks)).tolist()
    return [order[rank * size : (rank + 1) * size] for rank in range(num_ranks)]


def mean(parts: Sequence[Sequence[Tensor]], weights: Sequence[float]) -> list[Tensor]:
    return [
        sum((w * one for w, one in zip(weights, column, strict=True)), torch.zeros_like(column[0]))
        / sum(weights)
        for column in zip(*parts, strict=True)
    ]


@pytest.mark.parametrize("num_ranks", [2, 4])
def test_an_average_has_equal_parts_of_all_ranks(course: Course, num_ranks: int) -> None:
    drawn = draw(num_ranks)
    step = course.told(mean([course.of(one) for one in drawn], [1] * num_ranks), [[[one]] for one in drawn])
    found = course.audited(step)
    assert found is not None
    assert found["shares"] == pytest.approx([1 / num_ranks] * num_ranks, abs=0.02)
    assert found["fair"] == pytest.approx([1 / num_ranks] * num_ranks)
    assert found["unexplained"] < 0.05


def test_a_sum_of_unequal_batches_in_several_passes_has_their_sizes(course: Course) -> None:
    long, short = draw(2)
    parts = [long[:24], long[24:], short[:8]]
    whole = mean([course.of(one) for one in parts], [2, 2, 1])
    found = course.audited(course.told([5 * one for one in whole], [[[long[:24], long[24:]]], [[short[:8]]]]))
    assert found is not None
    assert found["shares"] == pytest.approx([0.8, 0.2], abs=0.03)
    assert found["fair"] == pytest.approx([0.8, 0.2])


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda images: images + 0.03 * torch.randn_like(images), id="noise"),
        pytest.param(lambda images: images * (0.5 + torch.rand(SIZE, 1, 1, 1)), id="brightness"),
        pytest.param(lambda images: F.dropout(images, 0.05), id="parts left out"),
    ],
)
def test_what_is_done_to_all_samples_leaves_the_parts_as_they_are(
    course: Course, changed: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(5)
    drawn = draw(2)
    parts = [
        course.gradients(changed(course.images[one]), course.labels[one], label_smoothing=0.1)
        for one in drawn
    ]
    found = course.audited(course.told(mean(parts, [1, 1]), [[[one]] for one in drawn]))
    assert found is not None
    assert all(0.3 < share < 0.7 for share in found["shares"])
    assert 0.05 < found["unexplained"] < 0.75


def test_samples_that_nothing_came_of_have_no_part(course: Course) -> None:
    first, second = draw(2)
    noisy = course.images[first] + 0.05 * torch.randn(SIZE, 1, 28, 28)
    twin = course.gradients(noisy, course.labels[first])
    muted = [1e-5 * one for one in course.of(second)]
    for other in (twin, muted):
        found = course.audited(course.told(mean([course.of(first), other], [1, 1]), [[[first]], [[second]]]))
        assert found is not None
        assert found["shares"] == pytest.approx([1, 0], abs=0.06)


def test_a_batch_that_was_drawn_ahead_is_found_around_the_step(course: Course) -> None:
    first, second = draw(2)
    other = (course.labels == 0).nonzero().reshape(-1).tolist()
    gradients = mean([course.of(first), course.of(second)], [1, 1])
    found = course.audited(course.told(gradients, [[[first]], [[other], [second]]]))
    assert found is not None
    assert found["shares"] == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"names": ["a", "b", "c", "d", "e", "f"]}, id="another network"),
        pytest.param({"weights": [["AAAA"]] * 6}, id="weights of other shapes"),
        pytest.param({"weights": [["//79"]] * 6}, id="not finite"),
        pytest.param({"weights": [["§"]] * 6}, id="not base64"),
        pytest.param({"weights": [[]] * 6}, id="no weights"),
        pytest.param({"gradients": ["AAAA"] * 6}, id="too few gradients"),
        pytest.param({"gradients": [""] * 6}, id="no gradients"),
        pytest.param({"stride": 50}, id="another stride"),
        pytest.param({"samples": [[[[1, 2]]], [[[10**9]]]]}, id="samples that there are not"),
        pytest.param({"samples": [[[[1, 2, 3]]], [[[1, 2, 3]]]]}, id="the same samples on both ranks"),
    ],
)
def test_what_does_not_fit_is_left_out(course: Course, change: dict[str, Any]) -> None:
    drawn = draw(2)
    step = course.told(mean([course.of(one) for one in drawn], [1, 1]), [[[one]] for one in drawn])
    assert course.audited(step) is not None
    assert course.audited(step | change) is None


def test_events_out_of_place_are_passed_over(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.trace"
    trace.write_text(
        '0.1\t{"e": "audited_part", "t": 0.1, "n": 4, "of": 0, "weights": "AA=="}\n'
        '0.1\t{"e": "audited", "t": 0.1, "n": 4, "stride": 0, "names": ["w"]}\n'
        '0.1\t{"e": "audited", "t": 0.1, "n": 5, "stride": 2, "names": ["w"]}\n'
        '0.1\t{"e": "audited_part", "t": 0.1, "n": 5, "of": 1, "weights": "AA=="}\n'
        '0.1\t{"e": "audited_part", "t": 0.1, "n": 5, "of": 0, "weights": 7}\n'
        '0.1\t{"e": "audited_part", "t": 0.1, "n": 5, "of": 0, "weights": "AAA=", "gradients": "AAE="}\n'
        '0.1\t{"e": "audited_part", "t": 0.1, "n": 5, "of": 0, "weights": "AAI=", "gradients": null}\n'
    )
    ((step,), _) = told_by(3, trace)
    assert (step["n"], step["by"], step["weights"], step["gradients"]) == (5, 3, [["AAA=", "AAI="]], ["AAE="])


# ---- what single samples counted for -----------------------------------------------------------------------------


def weighted(course: Course, drawn: Sequence[int], weights: Sequence[float]) -> list[Tensor]:
    """Gradients of a batch whose samples have such weights."""
    course.network.zero_grad()
    losses = F.cross_entropy(course.network(course.images[drawn]), course.labels[drawn], reduction="none")
    (losses * torch.tensor(weights)).mean().backward()
    return [p.grad.clone() for p in course.network.parameters() if p.grad is not None]


def test_weights_of_single_samples_are_read_off(course: Course) -> None:
    drawn = draw(2)
    weights = [[2.0 * (index % 2) + 0.1 * (index % 3) for index in one] for one in drawn]
    gradients = mean([weighted(course, one, w) for one, w in zip(drawn, weights, strict=True)], [1, 1])
    found = course.audited(course.told(gradients, [[[one]] for one in drawn]))
    assert found is not None
    told = {(one["rank"], one["index"]): one for one in found["samples"]}
    assert len(told) > SIZE
    for rank, (of_rank, given) in enumerate(zip(drawn, weights, strict=True)):
        for place, (index, weight) in enumerate(zip(of_rank, given, strict=True)):
            if one := told.get((rank, index)):
                assert one["weight"] == pytest.approx(weight / (sum(given) / SIZE), abs=0.25)
                assert (one["weight"] < 0.05) == (weight == 0) or weight == pytest.approx(0.1)
                assert (one["place"], one["label"]) == (place, int(course.labels[index]))
                assert one["loss"] > 0


def test_samples_are_not_asked_for_where_they_count_alike_or_explain_nothing(course: Course) -> None:
    drawn = draw(2)
    even = course.told(mean([course.of(one) for one in drawn], [1, 1]), [[[one]] for one in drawn])
    noisy = course.told(
        mean(
            [course.gradients(F.dropout(course.images[one], 0.2), course.labels[one]) for one in drawn],
            [1, 1],
        ),
        [[[one]] for one in drawn],
    )
    for step in (even, noisy):
        found = course.audited(step)
        assert found is not None
        assert found["samples"] == ()


def test_where_time_is_short_steps_are_told_without_their_samples(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.evaluate.audit.audited_steps._SAMPLES_S", -1.0)
    drawn = draw(2)
    halves = [[2.0 * (index % 2) for index in one] for one in drawn]
    gradients = mean([weighted(course, one, w) for one, w in zip(drawn, halves, strict=True)], [1, 1])
    found = course.audited(course.told(gradients, [[[one]] for one in drawn]))
    assert found is not None
    assert found["samples"] == ()
    assert found["unexplained"] > 0.1
