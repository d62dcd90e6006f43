"""What the course's tasks say about tables and tensors: whatever a file holds, an answer and never a failure."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.evaluate.points.outcome import TRAINED
from grader.evaluate.scorer.author_faults import TaskFaultError
from grader.evaluate.scorer.examination import answer_of
from grader.model.run_account import Exchange, RankAccount, RunAccount, UpdateAccount
from grader.model.task import Task

TASKS = [task for task in map(load_task, find_tasks()) if task.artifacts]
TIMES = {"wall_s": 3.0, "cpu_s": 2.0, "num_train": 1000.0}
RUNS = [
    {"world_size": 4.0, "steps": 50.0, "samples": 900.0, "device_bytes": 0.0, "steps_of_8": 50.0} | TIMES,
    {"world_size": 1.0, "steps": 0.0, "samples": 0.0, "device_bytes": 2.0e6} | TIMES,
]
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "count": st.sampled_from([0, 1, 2, 3, 4, 8, 64, 512]) | st.integers(0, 10**300),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, -1.0, 10.0]),
    "text": st.text(max_size=20),
}
NAMES = st.sampled_from(["1/0.weight", "2/0.weight", "2/0.bias", "4/2.weight", "x"])
TENSORS = st.sampled_from(
    [
        torch.zeros(10, 10),
        torch.full((10,), float("nan"), dtype=torch.float64),
        torch.ones(5, 10, dtype=torch.int64),
        torch.zeros(0),
        torch.tensor(1.0),
        torch.full((10, 10), float("inf")),
    ]
)


def module_of(task: Task) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"examined_{task.name.replace('-', '_')}", task.folder / "evaluate.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = {task.name: module_of(task) for task in TASKS}


def files(task: Task) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of a task's files, in the shape that the reader lets through."""
    contents = {}
    for artifact in task.artifacts:
        row = st.fixed_dictionaries({name: KINDS[kind] for name, kind in artifact.columns})
        contents[artifact.name] = (
            st.lists(row, min_size=1, max_size=8)
            if artifact.columns
            else st.dictionaries(NAMES, TENSORS, max_size=4)
        )
    return st.fixed_dictionaries({}, optional=contents)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_file_gets_answers(task: Task, data: st.DataObject) -> None:
    left, run = data.draw(files(task)), RunAccount(data.draw(st.sampled_from(RUNS)))
    asked = {item.answer for item in task.rubric if item.answer} | {TRAINED}
    for name, given_answer in MODULES[task.name].examine(left, run).items():
        answer = answer_of(given_answer)
        assert name in asked, "an answer that no rubric item takes"
        assert answer.said.strip().endswith(".")
        assert not answer.file or answer.file in left


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_without_files_there_is_nothing_to_say(task: Task) -> None:
    assert MODULES[task.name].examine({}, RunAccount(RUNS[0])) == {}


def test_there_are_such_tasks() -> None:
    assert {"gradient-averaging", "gradient-descent", "single-gpu"} <= {task.name for task in TASKS}
    assert all(Path(task.folder, "evaluate.py").is_file() for task in TASKS)


AVERAGING = MODULES["gradient-averaging"]
PARTS = {k: [(sum(m[:r]), sum(m[: r + 1])) for r in range(k)] for k, m in AVERAGING.SHARES.items()}
RIGHT_ROWS = [
    {"world_size": k, "rank": r, "samples": last - first, "loss": AVERAGING._gradient(first, last)[0]}
    for k, spans in PARTS.items()
    for r, (first, last) in enumerate(spans)
]


def gradients(weight: Any, spans: dict[int, list[tuple[int, int]]] = PARTS) -> dict[str, torch.Tensor]:
    """What a script would hand in that adds up its ranks' gradients with these weights, by (world size, samples)."""
    found = {}
    for k, parts in spans.items():
        own = [(weight(k, last - first), AVERAGING._gradient(first, last)[1]) for first, last in parts]
        for name in own[0][1]:
            found[f"{k}/{name}"] = torch.stack([w * g[name] for w, g in own]).sum(dim=0)
    return found


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (lambda k, m: 1 / k, "it is the plain mean of the ranks' gradients"),
        (lambda k, m: 1.0, "it is the sum of the ranks' gradients, without weights"),
        (lambda k, m: (m / 60) ** 2, "with the weight m/n counted twice"),
        (lambda k, m: m / 240, "it is the right sum divided by the 4 ranks that were started"),
        (lambda k, m: m / 60 / k, "it is the right sum divided by the 2 ranks that share the batch"),
        (lambda k, m: float(m), "it is 60 times the right one"),
        (lambda k, m: m / 60 * (m in (60, 42)), "it is rank 0's own part alone"),
        (lambda k, m: m / 60 + (k > 1), "the weights 1.7, 1.3; right are 42/60, 18/60"),
    ],
)
def test_a_gradient_is_named_for_what_it_is(weight: Any, said: str) -> None:
    share, told, _ = AVERAGING.examine({"gradients.pt": gradients(weight)}, {"world_size": 4.0})["gradient"]
    assert share < 1
    assert said in told


@pytest.mark.parametrize(
    ("order", "turned", "said"),
    [
        (sorted, "", "in the order `0.bias`, `0.weight`, `2.bias`, `2.weight`"),
        (list, "2.weight", "with rows for columns in `2.weight`"),
    ],
)
def test_right_numbers_in_the_wrong_places(order: Any, turned: str, said: str) -> None:
    right = {key: g for key, g in gradients(lambda k, m: m / 60).items() if key.startswith("1/")}
    moved = {key: g.t().reshape(g.shape) if key == f"1/{turned}" else g for key, g in right.items()}
    vector = torch.cat([moved[key].flatten() for key in order(moved)])
    cut = vector.split([g.numel() for g in right.values()])
    left = {key: part.view_as(right[key]) for key, part in zip(right, cut, strict=True)}
    share, told, _ = AVERAGING.examine({"gradients.pt": left}, {"world_size": 1.0})["gradient"]
    assert share == 0
    assert f"right ones in the wrong places, {'one behind the other ' * (not turned)}{said}." in told


def test_some_parameters_alone_are_scaled() -> None:
    right = gradients(lambda k, m: m / 60)
    some = {key: g / int(key[0]) if key.endswith("bias") else g for key, g in right.items()}
    share, told, _ = AVERAGING.examine({"gradients.pt": some}, {"world_size": 4.0})["gradient"]
    assert share == 0.25
    assert "At world size 2" in told
    assert "`0.bias` and `2.bias` are each 0.5 times the right one, and the others are right." in told


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ((False, False, False, False, False), "still hold gradients of an earlier world size"),
        ((True, True, True, True, False), "ranks without samples add the gradient that they still hold"),
    ],
)
def test_gradients_that_were_still_there(way: tuple[bool, ...], said: str) -> None:
    right = gradients(lambda k, m: m / 60)
    sums = AVERAGING._left_over(4, *way)
    for k, summed in sums.items():
        flat = summed
        for name in [n for n in right if n.startswith(f"{k}/")]:
            size = right[name].numel()
            right[name], flat = flat[:size].reshape(right[name].shape), flat[size:]
    share, told, _ = AVERAGING.examine({"gradients.pt": right}, {"world_size": 4.0})["gradient"]
    assert share < 1
    assert said in told


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            lambda k, r, m, own: own * m / 60,
            "What it tells is that mean times 42/60, the weight of its share.",
        ),
        (
            lambda k, r, m, own: own / k,
            "What it tells is that mean divided by the 2 ranks that share the batch.",
        ),
        (lambda k, r, m, own: AVERAGING._gradient(0, 60)[0], "the mean over the whole batch"),
        (
            lambda k, r, m, own: AVERAGING._gradient(60 - m, 60)[0],
            "the mean over the samples 18 to 59; its share is 0",
        ),
        (
            lambda k, r, m, own: AVERAGING._torn(sum(AVERAGING.SHARES[k][:r]), 60 - m if r == 0 else 0, m)[0],
            "the mean over the inputs of samples 0 to 41 beside the targets of samples 18 to 59.",
        ),
        (lambda k, r, m, own: own + 0.1 * k, "is 0.897649."),
    ],
)
def test_a_loss_is_named_for_what_it_is(loss: Any, said: str) -> None:
    rows = [
        {**row, "loss": loss(row["world_size"], row["rank"], row["samples"], row["loss"])}
        for row in RIGHT_ROWS
    ]
    rows[0] = RIGHT_ROWS[0]
    share, told, _ = AVERAGING.examine({"shares.csv": rows}, RunAccount({"world_size": 4.0}))["shares"]
    assert share == 0.25
    assert said in told


def stepped(steps: float, kind: str, right: int, off: Any = lambda k, own: own - 0.01 * k) -> dict[str, Any]:
    """What is answered where losses are right at one world size alone, and gradients too."""
    rows = [
        row if row["world_size"] == right else {**row, "loss": off(row["world_size"], row["loss"])}
        for row in RIGHT_ROWS
    ]
    held = {
        name: tensor if name.startswith(f"{right}/") else tensor.cos()
        for name, tensor in gradients(lambda k, m: m / 60).items()
    }
    updates = (UpdateAccount(0, 0, kind, int(steps), 180, 0.1, 0.1, 0.1),)
    account = RunAccount({"world_size": 4.0, "steps": steps}, updates=updates)
    answers: dict[str, Any] = AVERAGING.examine({"shares.csv": rows, "gradients.pt": held}, account)
    return answers


@pytest.mark.parametrize(
    ("kind", "right", "said"),
    [
        (
            "SGD",
            1,
            "at world sizes 2, 3 and 4 of others: the weights changed between the rounds. `SGD` took 3 steps.",
        ),
        (
            "",
            4,
            "at world sizes 1, 2 and 3 of others: the weights changed between the rounds. The script took 3 steps.",
        ),
    ],
)
def test_weights_that_changed_between_the_rounds_are_told_once(kind: str, right: int, said: str) -> None:
    answers = stepped(3, kind, right)
    assert [answers[name][0] for name in ("shares", "gradient")] == [0.25, 0.25]
    assert answers["shares"][1] == answers["gradient"][1]
    assert answers["shares"][1].endswith(said)


@pytest.mark.parametrize(
    ("steps", "off"),
    [
        (0, lambda k, own: own - 0.01 * k),
        (3, lambda k, own: own / k),  # a loss that is known
        (3, lambda k, own: own if k == 3 else own - 0.01 * k),
    ],
)
def test_other_losses_are_no_sign_of_other_weights(steps: float, off: Any) -> None:
    answers = stepped(steps, "SGD", 1, off)
    assert not any("changed between the rounds" in answer[1] for answer in answers.values())


SUMMED, SENT = ("all_reduce", 2 * 1320), ("all_gather_object", None)


@pytest.mark.parametrize(
    ("brought", "wrapped", "share"),
    [
        ({SUMMED: 0.0}, False, 0.5),
        ({SUMMED: 1e-9, SENT: None, ("gather", 16): 0.8}, False, 0.5),  # its losses are no gradients
        ({("all_reduce", 1320): 0.0, ("reduce", 1320): 0.0}, False, 0.5),
        ({SUMMED: 0.05}, False, 1.0),  # a gradient, weighted by its share
        ({SENT: None, ("all_reduce", 8): 0.0}, False, 1.0),
        ({SUMMED: None}, False, 1.0),
        ({("isend", 1320): 0.2, SUMMED: 0.0}, False, 1.0),  # takes what rank 0 has added up
        ({SUMMED: 0.0}, True, 1.0),  # DDP's own exchanges are not among these
    ],
)
def test_a_rank_brings_what_it_says_that_it_computed(
    brought: dict[tuple[str, int | None], float | None], wrapped: bool, share: float
) -> None:
    ranks = tuple(RankAccount(r, True, "gloo", ("ddp",) * wrapped, None) for r in range(2))
    exchanges = [
        Exchange(1, name, 4, size, (0, 1), path="train.py", line=9, largest=most)
        for (name, size), most in (brought | {("recv", 1320): None}).items()
    ]
    run = RunAccount({"world_size": 2.0}, ranks=ranks, exchanges=tuple(exchanges))
    found, told, _ = AVERAGING.examine({"shares.csv": RIGHT_ROWS[:3]}, run)["shares"]
    assert found == share
    assert ("Rank 1 of 2 says that it had 18 samples, but it brought no" in told) is (share < 1)


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_rank_brings_is_of_its_own_share_and_not_of_all(whole: bool) -> None:
    ranks = tuple(RankAccount(r, True, "gloo", (), None) for r in range(2))
    first, last = PARTS[1][0] if whole else PARTS[2][1]
    largest = float(0.3 * AVERAGING._flat(first, last).abs().max())
    exchanges = (
        Exchange(0, "all_reduce", 8, 2640, (0, 1), largest=float(AVERAGING._flat(0, 60).abs().max())),
        Exchange(1, "all_reduce", 8, 2640, (0, 1), path="train.py", line=9, largest=largest * (1 + 1e-15)),
    )
    run = RunAccount({"world_size": 2.0}, ranks=ranks, exchanges=exchanges)
    found, told, _ = AVERAGING.examine({"shares.csv": RIGHT_ROWS[:3]}, run)["shares"]
    assert found == (0.5 if whole else 1.0)
    assert ("at train.py:9 is the gradient of all 60, times 18/60: no gradient of its share" in told) is whole


def test_a_right_sum_over_other_samples_is_told_so() -> None:
    spans = {k: [(60 - last, 60 - first) for first, last in parts] for k, parts in PARTS.items()}
    rows = [
        {**row, "loss": AVERAGING._gradient(*spans[row["world_size"]][row["rank"]])[0]} for row in RIGHT_ROWS
    ]
    left = {
        "shares.csv": rows,
        "gradients.pt": gradients(lambda k, m: m / 60, {1: PARTS[1], 2: [(0, 42), (18, 36)]}),
    }
    rows[2] = {**rows[2], "loss": AVERAGING._gradient(18, 36)[0]}
    rows[1] = RIGHT_ROWS[1]
    said = AVERAGING.examine(left, RunAccount({"world_size": 2.0}))["gradient"][1]
    assert said.endswith(": it is of other samples. Rank 1 took 18 to 35; its share is 42 to 59.")


def test_inputs_beside_targets_of_others_are_told_so_of_loss_and_gradient() -> None:
    loss, other = AVERAGING._torn(42, 0, 18)
    right, flat = gradients(lambda k, m: m / 60), 0.7 * AVERAGING._flat(0, 42) + 0.3 * other
    cut = flat.split([right[name].numel() for name in right if name.startswith("2/")])
    for name, part in zip([n for n in right if n.startswith("2/")], cut, strict=True):
        right[name] = part.view_as(right[name])
    rows = [
        {**row, "loss": loss} if (row["world_size"], row["rank"]) == (2, 1) else row for row in RIGHT_ROWS
    ]
    told = AVERAGING.examine({"shares.csv": rows, "gradients.pt": right}, RunAccount({"world_size": 2.0}))
    for answer in told.values():
        assert "the inputs of samples 42 to 59 beside the targets of samples 0 to 17." in answer[1]


def test_gradients_of_zeros_alone_are_called_that() -> None:
    share, told, _ = AVERAGING.examine({"gradients.pt": gradients(lambda k, m: 0)}, {"world_size": 4.0})[
        "gradient"
    ]
    assert share == 0
    assert told.endswith(": all its numbers are 0.")


SINGLE = MODULES["single-gpu"]
STEPS = {2: (40, 0.004), 4: (40, 0.005), 64: (100, 0.012)}
"""By batch size: steps that a run made, and seconds of one."""
SEEN = {
    **{f"steps_of_{size}": float(number) for size, (number, _) in STEPS.items()},
    **{f"{name}_of_{size}": took for size, (_, took) in STEPS.items() for name in ("step_s", "quick_step_s")},
    "samples": 6640.0,
    "wall_s": 6.0,
    "device_bytes": 0.0,
}


def timed(**changes: tuple[int, float]) -> list[dict[str, Any]]:
    """A table of the steps that were seen; `b2=(images, seconds of a step)` tells something else of batch size 2."""
    rows = []
    for size, (number, took) in STEPS.items():
        images, step_s = changes.get(f"b{size}", (number * size, took))
        seconds = images / size * step_s
        rows.append(
            {"batch_size": size, "images": images, "seconds": seconds, "images_per_s": images / seconds}
        )
    return rows


@pytest.mark.parametrize(
    ("changes", "seen", "share", "said"),
    [
        ({}, {}, 1.0, "train 500, 800 and 5,333 images/s."),
        ({"b2": (60, 0.002)}, {}, 1.0, "train 1,000, "),
        ({"b64": (6400, 0.03)}, {}, 1.0, "and 2,133 images/s."),
        ({"b2": (4, 0.0005)}, {}, 0.0, "By the table a step of batch size 2 took 0.0005 s; by the clock"),
        ({"b64": (640, 0.003)}, {}, 0.0, "By the table a step of batch size 64 took 0.003 s"),
        ({"b4": (160, 0.06)}, {}, 0.0, "By the table a step of batch size 4 took 0.06 s"),
        (
            {"b2": (90, 0.004)},
            {},
            0.0,
            "timed over 90 images by the table; the run made 40 steps of that size.",
        ),
        (
            {},
            {"steps_of_4": 0.0},
            0.0,
            "timed over 160 images by the table; the run made no step of that size.",
        ),
        ({}, {"samples": 0.0}, None, "No training steps were seen"),
    ],
)
def test_a_table_is_held_against_steps_of_its_own_batch_sizes(
    changes: dict[str, tuple[int, float]], seen: dict[str, float], share: float | None, said: str
) -> None:
    answer = SINGLE.examine({"throughput.csv": timed(**changes)}, SEEN | seen)["throughput"]
    assert answer[0] == share
    assert said in answer[1]


@pytest.mark.parametrize("first_s", [0.0, 2.0])
def test_a_first_step_that_pays_for_all_is_no_reason_to_doubt_the_others(first_s: float) -> None:
    """On a GPU the first step may take a thousand times what others do."""
    number, took = STEPS[2]
    seen = {"step_s_of_2": (first_s + (number - 1) * took) / number, "wall_s": 9.0}
    assert SINGLE.examine({"throughput.csv": timed()}, SEEN | seen)["throughput"][0] == 1.0


def test_layers_that_are_counted_once_more_in_each_batch_size_are_known_by_the_pattern() -> None:
    rows = {
        size: {"batch_size": size, "activations": SINGLE._kept_bytes(size) * times}
        for times, size in enumerate(SINGLE.BATCH_SIZES, start=1)
    }
    share, said, _ = SINGLE._activations(rows)
    assert share == 0.0
    assert "3 times as much as at 2" in said
    assert "counted once more in each batch size that follows" in said
    right = {size: {"activations": SINGLE._kept_bytes(size)} for size in SINGLE.BATCH_SIZES}
    assert SINGLE._activations(right)[0] == 1.0


DESCENT = MODULES["gradient-descent"]


def fitted(size: int, w: float, losses: list[float]) -> dict[str, list[dict[str, Any]]]:
    """Both tables of a run in which one batch size has this slope and these losses, and ends with its last one."""
    updates = (len(losses) - 1) * 512 // size
    row = {
        "batch_size": size,
        "learning_rate": 0.1,
        "updates": updates,
        "samples": updates * size,
        "seconds": 0.1,
        "w": w,
        "b": DESCENT._best_fit()[1],
        "loss": losses[-1],
    }
    curve = [{"batch_size": size, "epoch": e, "loss": loss} for e, loss in enumerate(losses)]
    return {"table.csv": [row], "losses.csv": curve}


def test_a_slope_of_nothing_is_told_with_what_makes_it_so_and_once() -> None:
    left = fitted(1, 0.4, [DESCENT._loss(0, 0), 32.0, DESCENT._loss(0.4, DESCENT._best_fit()[1])])
    told = DESCENT.examine(left, {"wall_s": 9.0})
    assert "nothing of x came into it" in told["line"][1]
    assert told["own-runs"][1] == told["line"][1]
    assert "nothing of x" not in DESCENT._line(8, {"w": 0.4, "b": 0.0, "loss": 1.0})


@pytest.mark.parametrize(("last", "rose"), [(1.2, True), (0.9, False)])
def test_a_loss_that_rose_when_training_stopped_is_said_to_have_risen(last: float, rose: bool) -> None:
    left = fitted(1, 10.0, [DESCENT._loss(0, 0), 1.0, last])
    said = DESCENT._ended(1, left["table.csv"][0], left["losses.csv"])
    assert "stops at epoch 2, which still changed the loss" in said
    assert ("it rose" in said) is rose


@pytest.mark.parametrize(("factor", "words"), [(0.5, "half as large"), (2.0, "2 times as large"), (0.7, "")])
def test_updates_of_other_gradients_are_told_by_their_factor(factor: float, words: str) -> None:
    epochs, loss = DESCENT._train(512, 0.1 * factor, 0)
    row = fitted(512, DESCENT._best_fit()[0], [loss])["table.csv"][0] | {"updates": epochs, "loss": loss}
    told = DESCENT._scaled(512, row)
    assert bool(told) == bool(words)
    assert words in told
    assert DESCENT._scaled(64, row | {"batch_size": 64}) == ""


def test_a_training_that_begins_where_another_ended_is_told_once() -> None:
    end = DESCENT._loss(*DESCENT._best_fit())
    first, second = fitted(1, 10.0, [DESCENT._loss(0, 0), end]), fitted(8, 10.0, [end, end])
    left = {name: first[name] + second[name] for name in first}
    told = DESCENT.examine(left, {"wall_s": 9.0})
    assert "Batch size 8 begins at a loss of" in DESCENT._begun(
        8, {r["batch_size"]: r for r in left["table.csv"]}, left["losses.csv"]
    )
    assert DESCENT._begun(1, {r["batch_size"]: r for r in left["table.csv"]}, left["losses.csv"]) == ""
    assert told["stopping"][0] < 1


def whole_batches(epochs: int, rate: float = 0.1) -> list[tuple[float, float]]:
    """W and b before the first and after each of these updates with all points."""
    w = b = 0.0
    found = [(w, b)]
    for _ in range(epochs):
        offs = [w * x + b - y for x, y in zip(DESCENT._X, DESCENT._Y, strict=True)]
        by_w = sum(off * x for off, x in zip(offs, DESCENT._X, strict=True))
        w, b = w - rate * 2 * by_w / 512, b - rate * 2 * sum(offs) / 512
        found.append((w, b))
    return found


def test_a_loss_from_before_the_last_update_is_told_so_and_once() -> None:
    lines = whole_batches(1)
    start = DESCENT._loss(0, 0)
    left = fitted(512, lines[-1][0], [start, start])
    left["table.csv"][0] |= {"b": lines[-1][1]}
    told = DESCENT.examine(left, {"wall_s": 9.0})
    said = DESCENT._late_loss({512: left["table.csv"][0]})
    assert "which is that from before its last update" in said
    assert DESCENT._own_runs(512, left["table.csv"][0])
    right = left["table.csv"][0] | {"loss": DESCENT._loss(*lines[-1])}
    assert DESCENT._late_loss({512: right}) == ""
    several = {size: left["table.csv"][0] | {"batch_size": size} for size in DESCENT.BATCH_SIZES}
    told = DESCENT.examine({**left, "table.csv": [*several.values()]}, {"wall_s": 9.0})
    assert said == told["line"][1] == told["own-runs"][1]


def test_updates_that_are_too_few_because_training_stopped_early_are_told_once() -> None:
    lines = whole_batches(45)
    left = fitted(512, lines[-1][0], [DESCENT._loss(*line) for line in lines])
    left["table.csv"][0] |= {"b": lines[-1][1]}
    rows = [
        {**left["table.csv"][0], "batch_size": size, "updates": 45 * 512 // size}
        for size in DESCENT.BATCH_SIZES
    ]
    curves = [{**row, "batch_size": size} for size in DESCENT.BATCH_SIZES for row in left["losses.csv"]]
    told = DESCENT.examine({"table.csv": rows, "losses.csv": curves}, {"wall_s": 9.0})
    assert "stops at epoch 45" in told["stopping"][1]
    assert told["own-runs"][1] == told["stopping"][1]


def test_numbers_of_other_runs_stand_behind_the_file() -> None:
    answer = answer_of((1, "Right.", "runs.csv", {"seconds": [3, 4.5]}))
    assert (answer.share, answer.file, answer.brought) == (1.0, "runs.csv", {"seconds": (3.0, 4.5)})
    for wrong in ({"seconds": 3}, {"seconds": ["x"]}, ["seconds"]):
        with pytest.raises(TaskFaultError):
            answer_of((1, "Right.", "runs.csv", wrong))
