"""Line plots of a report: loss, the task's metrics, samples per second, learning rate and memory.

Each function gives (SVG or "", sentence, legend); an empty drawing comes with the sentence that says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from grader.judging.attempt import Attempt
from grader.model.metric import Metric, target_of
from grader.report.plots import series
from grader.report.plots.canvas import colour, draw, rank_colour
from grader.report.plots.series import Points
from grader.report.score_rounding import coarse

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


def network(attempt: Attempt, metric: Metric) -> Drawing:
    """A metric as reported by epoch, on training data too where it was reported, beside what the judge measured."""
    told, trained = series.reported(attempt, metric.reported_as), series.reported(attempt, metric.trained_as)
    metrics = attempt.grade.metrics
    hidden, target = metrics.get(metric.name), metrics.get(target_of(metric.name))
    # One drawing serves every audience, so it is the learner's.
    hidden = None if hidden is None else coarse(metric, hidden, target)
    if not told[0] and hidden is None:
        left = "left no weights that could be scored"
        return "", f"Not drawn: the script reported no {metric.title} and {left}.", ()

    def paint(axes: Axes) -> None:
        last = max(series.num_epochs(attempt), 1)
        _reported(axes, trained, "muted", "s")
        _reported(axes, told, "rank-0", "o")
        if target is not None:
            axes.axhline(target, color=colour("good"), linewidth=1.4, linestyle=(0, (5, 3)))
        if hidden is not None:
            axes.plot(
                [last],
                [hidden],
                marker="D",
                markersize=7,
                linestyle="none",
                color=colour("ink"),
                clip_on=False,
            )
        _epochs(axes, attempt, by_epoch=True)
        lowest = min([*told[1], *trained[1], *(v for v in (hidden, target) if v is not None)])
        if metric.share:
            axes.set_ylim(max(0.0, lowest - 0.1), 1.0)
        elif lowest >= 0:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(f"{metric.title} ({metric.unit})" if metric.unit else metric.title)

    parts = []
    if hidden is not None:
        against = f", against a target of {metric.text(target)}" if target is not None else ""
        seen = f"The judge measured {metric.text(hidden)}, or a little better"
        parts.append(f"{seen}, on data that the script never saw{against}.")
    if told[0]:
        parts.append(f"The script's own last report for its validation data is {metric.text(told[1][-1])}.")
    if told[0] and trained[0] and trained[0][-1] == told[0][-1]:
        gap = metric.gain(trained[1][-1], told[1][-1])
        parts.append(
            f"On what it trained on it reports {metric.text(trained[1][-1])}: a generalisation gap of "
            f"{gap:+.{metric.decimals}f}."
        )
    summary = " ".join(parts)
    legend = (
        *((("muted", "training, as reported"),) if trained[0] else ()),
        *((("rank-0", "validation, as reported"),) if told[0] else ()),
        *((("ink", "unseen data, by the judge"),) if hidden is not None else ()),
        *((("good", "target"),) if target is not None else ()),
    )
    return draw(f"plot-metric-{metric.name}", metric.heading, summary, SIZE, paint), summary, legend


def per_second(attempt: Attempt) -> str:
    """What the speed of training is told in: `images per second`."""
    return f"{attempt.task.samples} per second"


def throughput(attempt: Attempt) -> Drawing:
    """Samples per second of training, rank by rank, beside one rank alone."""
    lines = series.throughput(attempt)
    if not lines:
        return "", "Not drawn: the probe saw no training steps.", ()
    alone, what = attempt.grade.metrics.get("samples_per_s_one_rank"), per_second(attempt)

    def paint(axes: Axes) -> None:
        for rank, (xs, ys) in lines:
            axes.plot(xs, ys, color=rank_colour(rank), linewidth=1.4, marker="." if len(xs) == 1 else None)
        if alone:
            axes.axhline(alone, color=colour("muted"), linewidth=1.2, linestyle=(0, (2, 2)))
        axes.set_xlabel("seconds since the start")
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)

    together = attempt.grade.metrics.get("samples_per_s")
    summary = f"All ranks together train on {together:,.0f} {what}; v" if together else "V"
    summary += "alidation and saving are not counted."
    summary += f" One rank alone reaches {alone:,.0f}." if alone else ""
    legend = (*_rank_legend(lines), *((("muted", "one rank alone"),) if alone else ()))
    return draw("plot-throughput", what.capitalize(), summary, SIZE, paint), summary, legend


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
