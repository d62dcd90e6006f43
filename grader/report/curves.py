"""Line plots of a report: loss, accuracy, images per second, learning rate and memory.

Each function gives (SVG or "", sentence, legend); an empty drawing comes with the sentence that says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from grader.judging.attempt import Attempt
from grader.report import series
from grader.report.canvas import colour, draw, rank_colour
from grader.report.score_rounding import coarse
from grader.report.series import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Legend: TypeAlias = tuple[tuple[str, str], ...]
Drawing: TypeAlias = tuple[str, str, Legend]
"""SVG, sentence, legend."""

SIZE = (440, 240)


def loss(attempt: Attempt) -> Drawing:
    """Training loss as the probe saw it, with the losses that the script reported."""
    seen = series.step_losses(attempt)
    train, validation = series.reported(attempt, "train_loss"), series.reported(attempt, "val_loss")
    if not seen and not train[0] and not validation[0]:
        return "", "Not drawn: neither the probe nor metrics.json knows a loss.", ()
    by_epoch = bool(series.num_epochs(attempt))

    def paint(axes: Axes) -> None:
        for rank, (xs, ys) in seen:
            axes.plot(xs, ys, color=rank_colour(rank), linewidth=1.1, alpha=0.75)
        _reported(axes, train, "muted", "s")
        _reported(axes, validation, "ink", "o")
        _epochs(axes, attempt, by_epoch=by_epoch)
        axes.set_ylabel("loss")
        axes.set_ylim(bottom=0)

    summary = (
        "The loss of each training step, as the probe saw it"
        if seen
        else "The loss as the script reported it"
    )
    if seen:
        summary += f": rank {seen[0][0]} goes from {seen[0][1][1][0]:.3g} to {seen[0][1][1][-1]:.3g}"
    summary += "; squares and dots are the script's own report." if seen and train[0] else "."
    legend = (
        *_rank_legend(seen, ", each step"),
        *((("muted", "training, as reported"),) if train[0] else ()),
        *((("ink", "validation, as reported"),) if validation[0] else ()),
    )
    return draw("plot-loss", "Loss", summary, SIZE, paint), summary, legend


def accuracy(attempt: Attempt) -> Drawing:
    """Reported accuracy by epoch, on training data too where it was reported, beside what the judge measured."""
    told, trained = series.reported(attempt, "val_accuracy"), series.reported(attempt, "train_accuracy")
    metrics = attempt.grade.metrics
    hidden, target = metrics.get("accuracy"), metrics.get("accuracy_target")
    # One drawing serves every audience, so it is the learner's.
    hidden = None if hidden is None else coarse(hidden, target)
    if not told[0] and hidden is None:
        return "", "Not drawn: the script reported no accuracy and left no weights that could be scored.", ()

    def paint(axes: Axes) -> None:
        last = max(series.num_epochs(attempt), 1)
        _reported(axes, trained, "muted", "s")
        _reported(axes, told, "rank-0", "o")
        if target is not None:
            axes.axhline(target, color=colour("good"), linewidth=1.4, linestyle=(0, (5, 3)))
        if hidden is not None:
            axes.plot([last], [hidden], marker="D", markersize=7, linestyle="none", color=colour("ink"))
        _epochs(axes, attempt, by_epoch=True)
        lowest = min([*told[1], *trained[1], *(v for v in (hidden, target) if v is not None)])
        axes.set_ylim(max(0.0, lowest - 0.1), 1.0)
        axes.set_ylabel("accuracy")

    parts = []
    if hidden is not None:
        against = f", against a target of {target:.3f}" if target is not None else ""
        parts.append(
            f"The judge measured {hidden:.3f}, or a little more, on data that the script never saw{against}."
        )
    if told[0]:
        parts.append(f"The script's own last report for its validation data is {told[1][-1]:.3f}.")
    if told[0] and trained[0] and trained[0][-1] == told[0][-1]:
        gap = trained[1][-1] - told[1][-1]
        parts.append(
            f"On what it trained on it reports {trained[1][-1]:.3f}: a generalisation gap of {gap:+.3f}."
        )
    summary = " ".join(parts)
    legend = (
        *((("muted", "training, as reported"),) if trained[0] else ()),
        *((("rank-0", "validation, as reported"),) if told[0] else ()),
        *((("ink", "unseen data, by the judge"),) if hidden is not None else ()),
        *((("good", "target"),) if target is not None else ()),
    )
    return draw("plot-accuracy", "Accuracy", summary, SIZE, paint), summary, legend


def throughput(attempt: Attempt) -> Drawing:
    """Images per second of training, rank by rank, beside one rank alone."""
    lines = series.throughput(attempt)
    if not lines:
        return "", "Not drawn: the probe saw no training steps.", ()
    alone = attempt.grade.metrics.get("images_per_s_one_rank")

    def paint(axes: Axes) -> None:
        for rank, (xs, ys) in lines:
            axes.plot(xs, ys, color=rank_colour(rank), linewidth=1.4, marker="." if len(xs) == 1 else None)
        if alone:
            axes.axhline(alone, color=colour("muted"), linewidth=1.2, linestyle=(0, (2, 2)))
        axes.set_xlabel("seconds since the start")
        axes.set_ylabel("images per second")
        axes.set_ylim(bottom=0)

    together = attempt.grade.metrics.get("images_per_s")
    summary = f"All ranks together train on {together:,.0f} images per second; v" if together else "V"
    summary += "alidation and saving are not counted."
    summary += f" One rank alone reaches {alone:,.0f}." if alone else ""
    legend = (*_rank_legend(lines), *((("muted", "one rank alone"),) if alone else ()))
    return draw("plot-throughput", "Images per second", summary, SIZE, paint), summary, legend


def learning_rate(attempt: Attempt) -> Drawing:
    """Learning rate by step; ranks that agree are drawn as one line."""
    lines = series.learning_rates(attempt)
    if not lines:
        return "", "Not drawn: the probe saw no optimizer steps.", ()
    agree = all(points == lines[0][1] for _, points in lines)
    shown = lines[:1] if agree else lines

    def paint(axes: Axes) -> None:
        for rank, (xs, ys) in shown:
            axes.plot(xs, ys, color=rank_colour(rank), linewidth=1.5)
        axes.set_xlabel("optimizer step")
        axes.set_ylabel("learning rate")
        axes.set_ylim(bottom=0)

    ys = lines[0][1][1]
    course = f"stays at {ys[0]:.3g}" if min(ys) == max(ys) else f"goes from {ys[0]:.3g} to {ys[-1]:.3g}"
    summary = f"The learning rate {course}" + (" on all ranks." if agree else "; the ranks differ.")
    summary += f" Its largest value is {max(ys):.3g}." if min(ys) != max(ys) else ""
    legend = ((("rank-0", "all ranks"),)) if agree else _rank_legend(lines)
    return draw("plot-learning-rate", "Learning rate", summary, SIZE, paint), summary, legend


def memory(attempt: Attempt) -> Drawing:
    """Memory of each rank over time."""
    kind, lines = series.memory(attempt)
    if not lines:
        return "", "Not drawn: the probe recorded no memory use.", ()

    def paint(axes: Axes) -> None:
        for rank, (xs, ys) in lines:
            axes.plot(xs, ys, color=rank_colour(rank), linewidth=1.4, marker="." if len(xs) == 1 else None)
        axes.set_xlabel("seconds since the start")
        axes.set_ylabel("MiB")
        axes.set_ylim(bottom=0)

    most = max(max(ys) for _, (_, ys) in lines)
    summary = f"At most {most:,.0f} MiB of {kind} per rank, measured at the optimizer steps."
    return draw("plot-memory", "Memory", summary, SIZE, paint), summary, _rank_legend(lines)


def _reported(axes: Axes, points: Points, variable: str, marker: str) -> None:
    if points[0]:
        size = 4.5 if len(points[0]) <= 40 else 0.0
        axes.plot(*points, color=colour(variable), linewidth=1.4, marker=marker, markersize=size)


def _epochs(axes: Axes, attempt: Attempt, *, by_epoch: bool) -> None:
    axes.set_xlabel("epoch" if by_epoch else "optimizer step")
    if by_epoch:
        last = max(series.num_epochs(attempt), 1)
        every = max(1, -(-last // 10))
        axes.set_xlim(0, last * 1.03)
        axes.set_xticks(range(0, last + 1, every))


def _rank_legend(lines: list[tuple[int, Points]], suffix: str = "") -> Legend:
    return tuple((f"rank-{rank % 8}", f"rank {rank}{suffix}") for rank, _ in lines)
