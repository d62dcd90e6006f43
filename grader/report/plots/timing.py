"""Plots of time: what each rank did when, and the measured time beside its target and the calibration's spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.judging.attempt import Attempt
from grader.report.plots import series
from grader.report.plots.canvas import band, colour, draw_many
from grader.report.plots.curves import SIZE, Drawing
from grader.report.words.gauges import measured_s
from grader.report.words.wording import seconds_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 900
_ROW = 40
_FOOT = 46
_LEFT, _RIGHT = 76, 12
_ACTIVITIES = {
    "compute": ("rank-0", "forward, backward and gradient exchange"),
    "optimizer": ("rank-1", "optimizer"),
    "data": ("wait", "waiting for data"),
    "validation": ("rank-2", "validation"),
}


def timeline(attempt: Attempt) -> Drawing:
    """Shares of time by activity along the run, one strip per rank."""
    length_s, strips = series.timeline(attempt)
    if not strips:
        return "", "Not drawn: the probe saw no training steps.", ()
    plot_height = len(strips) * _ROW
    height = 10 + plot_height + _FOOT

    def paint(figure: Figure) -> None:
        box = (_LEFT / _WIDTH, _FOOT / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, plot_height / height)
        axes = figure.add_axes(box)
        for row, strip in enumerate(strips):
            _paint_strip(axes, strip, len(strips) - 1 - row, length_s)
        axes.set_xlim(0, length_s)
        axes.set_ylim(0, len(strips))
        rows = [len(strips) - 0.5 - row for row in range(len(strips))]
        axes.set_yticks(rows, [f"rank {strip.rank}" for strip in strips])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds since the start")

    share = series.waiting_share(attempt) or 0.0
    summary = (
        f"The last training step ended {seconds_text(length_s)} after the start. Of the training time {share:.0%} went "
        "into waiting for data. Gaps are start-up, saving and everything else."
    )
    used = [name for name in _ACTIVITIES if any(any(strip.shares[name]) for strip in strips)]
    legend = tuple(_ACTIVITIES[name] for name in used)
    title = "What each rank did with its time"
    return draw_many("plot-timeline", title, summary, (_WIDTH, height), paint), summary, legend


def time_title(attempt: Attempt) -> str:
    """What the run's time is shown against."""
    if attempt.grade.metrics.get("time_target_s") is not None:
        return "Time against the target"
    return "Time beside accepted examples" if attempt.calibration is not None else "Time"


def against_target(attempt: Attempt) -> Drawing:
    """This run's time, the calibrated runs of the accepted styles, the target and its spread."""
    metrics = attempt.grade.metrics
    value, target = measured_s(attempt), metrics.get("time_target_s")
    if value is None:
        return "", "Not drawn: the run did not reach its end, so it has no time.", ()
    calibration = attempt.calibration
    if target is None and calibration is None:
        took = seconds_text(value)
        return "", f"Not drawn: there is no time target here. This run took {took}.", ()
    runs = [(style.submission, list(style.seconds)) for style in calibration.styles] if calibration else []
    alone = calibration.one_rank_s if calibration else None
    spread = calibration.spread if calibration else 0.0

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.22, 0.17, 0.75, 0.79))
        _paint_times(axes, value, target, spread, runs, alone)

    summary = f"This run took {seconds_text(value)}"
    summary += f"; the target is {seconds_text(target)}." if target is not None else "; there is no target."
    if runs:
        fastest = min(min(seconds) for _, seconds in runs)
        slowest = max(max(seconds) for _, seconds in runs)
        between = f" between {seconds_text(fastest)} and {seconds_text(slowest)}" if fastest < slowest else ""
        summary += f" Accepted examples took{between or f' {seconds_text(fastest)}'} on this machine."
    legend = (
        ("good" if target is None or value <= target else "bad", "this run"),
        *((("rank-0", "accepted examples, each run"),) if runs else ()),
        *((("muted", "the skeleton on one rank"),) if alone else ()),
        *((("ink", f"target, and the measured spread of ±{spread:.0%}"),) if target is not None else ()),
    )
    return draw_many("plot-time", time_title(attempt), summary, SIZE, paint), summary, legend


def _paint_strip(axes: Axes, strip: series.Strip, row: int, length_s: float) -> None:
    slices = len(strip.shares["data"])
    edges = [index * length_s / slices for index in range(slices + 1)]
    low = [row + 0.1] * slices
    for name, (variable, _) in _ACTIVITIES.items():
        high = [
            min(row + 0.9, base + 0.8 * share) for base, share in zip(low, strip.shares[name], strict=True)
        ]
        band(axes, edges, low, high, colour(variable))
        low = high


def _paint_times(
    axes: Axes,
    value: float,
    target: float | None,
    spread: float,
    runs: list[tuple[str, list[float]]],
    alone: float | None,
) -> None:
    rows = [("this run", [value])]
    rows += [
        ("example" if len(runs) == 1 else f"example {i}", seconds) for i, (_, seconds) in enumerate(runs, 1)
    ]
    rows += [("one rank", [alone])] if alone else []
    if target is not None:
        axes.axvspan(target * (1 - spread), target * (1 + spread), color=colour("grid"), linewidth=0)
        axes.axvline(target, color=colour("ink"), linewidth=1.4, linestyle=(0, (5, 3)))
    last = len(rows) - 1
    shade = colour("good" if target is None or value <= target else "bad")
    axes.barh([last], [value], height=0.55, color=shade, linewidth=0)
    for index, (name, seconds) in enumerate(rows[1:], start=1):
        mark = colour("muted" if name == "one rank" else "rank-0")
        axes.plot(seconds, [last - index] * len(seconds), "o", markersize=5, color=mark, alpha=0.8)
    axes.set_yticks([last - index for index in range(len(rows))], [name for name, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, last + 0.6)
    longest = max(second for _, seconds in rows for second in seconds)
    axes.set_xlim(0, max(longest, (target or 0.0) * (1 + spread)) * 1.06)
    axes.set_xlabel("seconds")
