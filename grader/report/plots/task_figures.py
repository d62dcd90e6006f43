"""Draws the figures that a task gave numbers for: curves, dots and contour lines, in panels side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.model.task_figure import Numbers, Panel, Surface, TaskFigure
from grader.report.plots.canvas import colour, draw_many, headline, rank_colour
from grader.report.plots.curves import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 900, 330
_TOP = 1e30
_LEFT, _RIGHT, _HEAD, _FOOT, _GAP = 62, 12, 28, 46, 66


def drawn(figure: TaskFigure) -> Drawing:
    """A task's figure; its summary is the task's own."""
    width = (_WIDTH - _LEFT - _RIGHT - _GAP * (len(figure.panels) - 1)) / len(figure.panels)

    def paint(whole: Figure) -> None:
        for number, panel in enumerate(figure.panels):
            left = _LEFT + number * (width + _GAP)
            height = (_HEIGHT - _HEAD - _FOOT) / _HEIGHT
            _paint(whole.add_axes((left / _WIDTH, _FOOT / _HEIGHT, width / _WIDTH, height)), panel)

    svg = draw_many(f"plot-own-{figure.name}", figure.title, figure.summary, (_WIDTH, _HEIGHT), paint)
    named = [pair for panel in figure.panels for pair in _legend(panel)]
    return svg, figure.summary, tuple(dict.fromkeys(named))


def _colours(panel: Panel) -> list[int]:
    return [curve.colour if curve.colour is not None else i for i, curve in enumerate(panel.series)]


def _legend(panel: Panel) -> list[tuple[str, str]]:
    return [
        (f"rank-{c % 8}", curve.label)
        for c, curve in zip(_colours(panel), panel.series, strict=True)
        if curve.label
    ]


def _paint(axes: Axes, panel: Panel) -> None:
    if panel.surface is not None:
        _contours(axes, panel.surface)
    for number, curve in zip(_colours(panel), panel.series, strict=True):
        style = {"linestyle": "none", "marker": "o", "markersize": 5.5} if curve.dots else {"linewidth": 1.6}
        axes.plot(_with_gaps(curve.xs), _with_gaps(curve.ys), color=rank_colour(number), **style)
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    headline(axes, panel.title)


def _contours(axes: Axes, surface: Surface) -> None:
    rows = [_with_gaps(row) for row in surface.heights]
    known = [height for row in surface.heights for height in row if height is not None]
    levels = [level for level in surface.levels if known and min(known) < level < max(known)]
    if not levels:
        return
    # A thin layer over all that is higher than a line: the higher, the darker.
    for level in levels:
        axes.contourf(surface.xs, surface.ys, rows, [level, _TOP], colors=[colour("rank-0")], alpha=0.09)
    lines = axes.contour(surface.xs, surface.ys, rows, levels, colors=[colour("rank-0")], linewidths=1.1)
    axes.clabel(lines, fontsize=9.5, colors=[colour("ink")], fmt="%g")


def _with_gaps(values: Numbers) -> list[float]:
    return [float("nan") if value is None else value for value in values]
