"""A figure of a task's own: numbers that its trusted code computed, for the report to draw, and the words beside them.

Decoration around evidence: no verdict is ever read off one.
"""

from __future__ import annotations

from dataclasses import dataclass

Numbers = tuple[float | None, ...]
"""None: no number there, which leaves a gap."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour, joined by a line or, with `dots`, each by itself; `xs` and `ys` are equally long.

    `colour` counts from 0; None: the next one. `label` stands in the legend; of series with one label, once.
    """

    label: str
    xs: Numbers
    ys: Numbers
    dots: bool = False
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Surface:
    """Heights over a plane, drawn as contour lines.

    Attributes:
        xs, ys: the grid, ascending; heights: one row for each of `ys`, one number in it for each of `xs`.
        levels: heights of the lines, ascending.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    heights: tuple[Numbers, ...]
    levels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: series or a surface, or both. `from_zero`: its y begins there."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...] = ()
    surface: Surface | None = None
    from_zero: bool = False


@dataclass(frozen=True, slots=True)
class TaskFigure:
    """Panels side by side.

    Attributes:
        name: lower-case letters, digits and dashes; one figure of a task each.
        title: heading. summary: what it shows, with the numbers, in a sentence or a few.
    """

    name: str
    title: str
    summary: str
    panels: tuple[Panel, ...]
