"""Trusted scoring of `assessment`: the network that the weights must fit, what they are worth, and a table of runs.

Runs only in the scorer, on a state dict that was loaded as plain tensors and tables that were read as plain numbers. It
never imports, executes or looks at a submission.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss
from grader.model.run_account import RunAccount
from grader.model.task_figure import Panel, Series, TaskFigure

_DEPTH, _WIDTH, _BASE_CHANNELS, _NUM_CLASSES = 10, 2, 8, 10


class Block(nn.Module):
    """Two 3x3 convolutions around which the input is carried past, named as in the skeleton."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.skip = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (N, in_channels, H, W) to (N, out_channels, H / stride, W / stride)."""
        hidden = self.conv1(F.relu(self.norm1(x)))
        hidden = self.conv2(F.relu(self.norm2(hidden)))
        total: torch.Tensor = self.skip(x) + hidden
        return total


class WideResNet(nn.Module):
    """The skeleton's network at its own depth and width: 76,450 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, _BASE_CHANNELS, 3, padding=1, bias=False)
        blocks, channels = [], _BASE_CHANNELS
        for group in range(3):
            for number in range((_DEPTH - 4) // 6):
                out_channels = _BASE_CHANNELS * _WIDTH * 2**group
                blocks.append(Block(channels, out_channels, stride=2 if group > 0 and number == 0 else 1))
                channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, _NUM_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map normalised images (N, 1, 28, 28) to logits (N, classes)."""
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        logits: torch.Tensor = self.head(x.mean(dim=(2, 3)))
        return logits


def build_model() -> nn.Module:
    """The task's network with fresh weights, on the CPU."""
    return WideResNet()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,)), without its random crop
    return accuracy_and_loss(model, (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels)


Row = dict[str, Any]
"""A run as `runs.csv` tells of it: ranks, batch_size (of one rank), learning_rate, epochs, seconds, accuracy."""

_FEWEST = 3
_FASTER = 4.0
"""How far the images per second of one rank may lie above this run's: batches of other sizes differ in that."""
_EXACTLY = 5e-3
_EPOCHS = 0.5
"""By how much a row's epochs may differ from the passes over the training images that were seen."""
_NEAR, _READ = 0.01, 0.05
"""Accuracy that counts as the best one's; how far a speed-up may be misread."""


def examine(left: dict[str, Any], run: RunAccount) -> dict[str, tuple[float | None, str, str]]:
    """Answer `comparison`: does the table make sense beside this run; and `reading`: was it read rightly."""
    rows = left.get("runs.csv")
    if rows is None:
        return {}
    answers: dict[str, tuple[Any, ...]] = {
        "comparison": (*_comparison(rows, run), "runs.csv", _brought(rows, run))
    }
    if "answers.csv" in left:
        answers["reading"] = (*_reading(rows, left["answers.csv"][0]), "answers.csv")
    return answers


def _comparison(rows: list[Row], run: RunAccount) -> tuple[float | None, str]:
    batches = _batches(run)
    if not batches:
        return None, "No training step was seen, so the table can't be held against the run."
    own = _own(rows, run)
    if own is None:
        drawn = f", {min(batches)} in each batch of the loader" if len(batches) > 1 else ""
        return 0.0, (
            f"None of the {len(rows)} rows of runs.csv is this run: {run['world_size']:.0f} ranks, {max(batches)} "
            f"images on each in a step{drawn}. Add the row at the end of training, from what the script really used."
        )
    if wrong := _disagrees(rows[own], run):
        return 0.0, f"Row {own + 1} of runs.csv is this run, and {wrong[0]}."
    if wrong_table := _impossible(rows, own, run) or _too_few(rows):
        return 0.5, wrong_table
    return 1.0, f"{len(rows)} runs that can be compared, and row {own + 1} is this one."


def _brought(rows: list[Row], run: RunAccount) -> dict[str, list[float]]:
    """Times of the rows that are not this run; none where it made more passes than its own row tells of."""
    own = _own(rows, run)
    if own is None or run.get("samples", 0.0) > (rows[own]["epochs"] + _EPOCHS) * run["num_train"]:
        return {}
    return {"seconds": [row["seconds"] for number, row in enumerate(rows) if number != own]}


def _batches(run: RunAccount) -> set[int]:
    """What may be called the batch of one rank: the samples of most steps and, where several make one, the loader's."""
    sizes = {name.removeprefix("steps_of_"): run[name] for name in run if name.startswith("steps_of_")}
    if not sizes:
        return set()
    stepped = int(max(sizes, key=lambda size: sizes[size]))
    drawn = {one.batch_samples for one in run.passes if one.purpose == "training"}
    return {stepped, *(size for size in drawn if 0 < size < stepped)}


def _own(rows: list[Row], run: RunAccount) -> int | None:
    """Of the rows with this run's ranks and batch the one that disagrees in the fewest things, the last of those."""
    alike = [
        i
        for i, row in enumerate(rows)
        if row["ranks"] == run["world_size"] and row["batch_size"] in _batches(run)
    ]
    epochs = run.get("samples", 0.0) / run["num_train"]
    apart = {i: len(_disagrees(rows[i], run)) + (abs(rows[i]["epochs"] - epochs) > _EPOCHS) for i in alike}
    return min(alike, key=lambda i: (apart[i], -i), default=None)


def _disagrees(row: Row, run: RunAccount) -> list[str]:
    """How the row of this run differs from it, each as the rest of a sentence."""
    wrong, measured = [], run.get("validation_accuracy")
    if not 0 < row["seconds"] <= run["wall_s"]:
        wrong.append(
            f"it tells of {row['seconds']:.4g} s; from start to end the run took {run['wall_s']:.1f} s"
        )
    if measured is not None and abs(row["accuracy"] - measured) > _NEAR:
        told = f"it tells an accuracy of {row['accuracy']:.4g}"
        wrong.append(f"{told}; the saved weights reach {measured:.3f} on the validation images")
    rates = [update.highest_rate for update in run.updates if update.highest_rate]
    if rates and abs(row["learning_rate"] - max(rates)) > 0.1 * max(rates):
        told = f"it tells a learning rate of {row['learning_rate']:.4g}"
        wrong.append(f"{told}; the highest that was seen is {max(rates):.4g}")
    return wrong


def _whole(row: Row) -> bool:
    """Whether a row tells of a run at all; none takes less than a thousandth of a second."""
    return min(row["ranks"], row["batch_size"], row["epochs"]) >= 1 and row["seconds"] >= 0.001


def _speed(row: Row, run: RunAccount) -> float:
    """Images per second of one rank."""
    return float(run["num_train"] * row["epochs"] / row["seconds"] / row["ranks"])


def _impossible(rows: list[Row], own: int, run: RunAccount) -> str:
    """The first thing that no such runs come to, as a sentence; "" where there is none."""
    for number, row in enumerate(rows, start=1):
        if not _whole(row):
            return f"Row {number} of runs.csv has no ranks, batch, epochs or seconds."
        if not 0 < row["accuracy"] <= 1:
            return f"Row {number} of runs.csv tells an accuracy of {row['accuracy']:.4g}; a share lies between 0 and 1."
    if all(row["accuracy"] == 1 for row in rows):
        return (
            "All rows of runs.csv tell an accuracy of 1; no such network is always right on images new to it."
        )
    taken: dict[float, int] = {}
    for number, row in enumerate(rows, start=1):
        first = taken.setdefault(row["seconds"], number)
        if first != number:
            return f"Rows {first} and {number} of runs.csv tell the same time to the last digit; no two runs take that."
    # A busy machine keeps a run waiting; what it computed in a second of its own does not depend on that.
    computing = min(rows[own]["seconds"], run["cpu_s"])
    speed = _speed(rows[own] | {"seconds": computing}, run)
    for number, row in enumerate(rows, start=1):
        if _speed(row, run) > _FASTER * speed:
            return (
                f"Row {number} of runs.csv comes to {_speed(row, run):,.0f} images per second on each rank; this run "
                f"made {speed:,.0f} in each second that it computed. Compare runs that were made on one machine."
            )
    return ""


def _too_few(rows: list[Row]) -> str:
    tried = {(row["ranks"], row["batch_size"], row["learning_rate"], row["epochs"]) for row in rows}
    if len(tried) < _FEWEST:
        return f"runs.csv has {len(tried)} different configurations; {_FEWEST} are asked for."
    if len({row["ranks"] for row in rows}) < 2 or all(row["ranks"] > 1 for row in rows):
        return "runs.csv has no run on one rank beside one on several, so nobody can read a speed-up in it."
    return ""


def _reading(rows: list[Row], told: Row) -> tuple[float, str]:
    """One third for each of the three questions."""
    if not all(map(_whole, rows)):
        return 0.0, "runs.csv has rows without ranks, seconds or epochs, in which nothing can be read."
    best = max(row["accuracy"] for row in rows)
    quickest = min(row["seconds"] for row in rows if row["accuracy"] >= best - _NEAR)
    wrong = []
    for name, right in (
        ("most_accurate", lambda row: row["accuracy"] == best),
        ("quickest_of_the_best", lambda row: row["accuracy"] >= best - _NEAR and row["seconds"] == quickest),
    ):
        numbers = [number for number, row in enumerate(rows, start=1) if right(row)]
        if told[name] not in numbers:
            wrong.append(f"`{name}` is {told[name]}; by runs.csv it is row {numbers[0]}")
    speedup = _speedup(rows)
    if speedup is None:
        wrong.append("a speed-up needs a run on one rank and one on several")
    elif abs(told["speedup"] - speedup) > _READ * speedup:
        how = _misread(rows, told["speedup"])
        wrong.append(f"`speedup` is {told['speedup']:.3g}; by runs.csv it is {speedup:.3g}{how}")
    said = "; ".join(wrong)
    return 1 - len(
        wrong
    ) / 3, f"{said[0].upper()}{said[1:]}." if wrong else "All three questions are answered as the table says."


def _speedup(rows: list[Row]) -> float | None:
    """Seconds of an epoch in the quickest run on one rank, as a multiple of those in the quickest on several."""
    alone = [row["seconds"] / row["epochs"] for row in rows if row["ranks"] == 1]
    together = [row["seconds"] / row["epochs"] for row in rows if row["ranks"] > 1]
    return min(alone) / min(together) if alone and together else None


def _misread(rows: list[Row], told: float) -> str:
    """What a wrong speed-up is the ratio of, as the rest of a sentence; "" where nobody knows."""
    kinds = [[row for row in rows if (row["ranks"] > 1) == several] for several in (False, True)]
    alone, together = (min(row["seconds"] for row in kind) for kind in kinds)
    best = [max(kind, key=lambda row: row["accuracy"]) for kind in kinds]
    per_epoch = [min(row["seconds"] / row["epochs"] for row in kind) for kind in kinds]
    whole = "of whole runs, which have different numbers of epochs"
    for value, words in (
        (alone / together, f": it is {alone:.4g} s / {together:.4g} s {whole}"),
        (best[0]["seconds"] / best[1]["seconds"], f": it is that of the seconds {whole}"),
        (per_epoch[1] / per_epoch[0], ": it is the other way round, several ranks' seconds by those of one"),
        (together / alone, f": it is the other way round, and {whole}"),
    ):
        if abs(told - value) <= _EXACTLY * abs(value):
            return words
    return ""


def figures(seen: Any) -> list[TaskFigure]:
    """The table of runs, drawn: what each took and reached, and how fast it read images."""
    rows = [row for row in seen.left.get("runs.csv", ()) if _whole(row)][:100]
    kinds = sorted({row["ranks"] for row in rows})[:8]
    if not rows or not seen.run.get("num_train"):
        return []
    reached, speeds = [], []
    for colour, ranks in enumerate(kinds):
        own = [row for row in rows if row["ranks"] == ranks]
        label = f"{ranks} rank{'s' * (ranks != 1)}"
        seconds, steps = [row["seconds"] for row in own], [float(row["batch_size"]) * ranks for row in own]
        per_s = [seen.run["num_train"] * row["epochs"] / row["seconds"] for row in own]
        reached.append(
            Series(label, tuple(seconds), tuple(row["accuracy"] for row in own), dots=True, colour=colour)
        )
        speeds.append(Series(label, tuple(steps), tuple(per_s), dots=True, colour=colour))
    panels = (
        Panel("What it took and what it reached", "seconds", "validation accuracy", tuple(reached)),
        Panel(
            "How fast it trained",
            "images of all ranks in a step",
            "images per second",
            tuple(speeds),
            from_zero=True,
        ),
    )
    told = f"The {len(rows)} runs of runs.csv, as the script tells of them; up and to the left is better."
    return [TaskFigure("runs", "Configurations tried", told, panels)]
