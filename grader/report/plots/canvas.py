"""From a matplotlib drawing to a small inline SVG that follows the page's colours, fonts and dark mode.

Matplotlib is imported when the first plot is drawn, never before. Colours are drawn as reserved codes and replaced by
CSS variables; ids are made unique in the page; the same drawing gives the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from grader.settings import draw_files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# `#a000NN` stands for the NN-th of these CSS variables; no other colour is ever drawn.
VARIABLES = (
    *(f"rank-{index}" for index in range(8)),
    "ink",
    "muted",
    "grid",
    "overlap",
    "good",
    "bad",
    "wait",
    "unseen",
)

_RESERVED = re.compile("#a000([0-9a-f]{2})")
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "grader",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "axes.linewidth": 0.8,
    "axes.titlesize": 11.5,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "path.simplify": True,
}
_INCH = 72.0
_ARGUMENTS = {"M": 2, "L": 2, "Q": 4, "C": 6}


def colour(variable: str) -> str:
    """The code to draw with, for one of `VARIABLES`."""
    return f"#a000{VARIABLES.index(variable):02x}"


def rank_colour(rank: int) -> str:
    """The colour of a rank; after eight ranks colours come again."""
    return colour(f"rank-{rank % 8}")


def draw(name: str, title: str, summary: str, size: tuple[int, int], paint: Callable[[Axes], None]) -> str:
    """One SVG element with one pair of axes, painted by `paint`.

    Args:
        name: unique in the page; letters, digits and dashes.
        title: short name for screen readers; summary: what the plot shows, in words.
        size: width and height in CSS pixels at full size.
        paint: draws on the axes, with `colour()` codes only.
    """
    return draw_many(name, title, summary, size, lambda figure: paint(figure.add_axes((0, 0, 1, 1))))


def draw_many(
    name: str, title: str, summary: str, size: tuple[int, int], paint: Callable[[Figure], None]
) -> str:
    """As `draw`, for a painter that places its own axes on the figure."""
    draw_files()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(size[0] / _INCH, size[1] / _INCH), dpi=_INCH)
        paint(figure)
        for axes in figure.axes:
            _dress(axes, size)
        out = io.StringIO()
        figure.savefig(
            out,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return _inline(out.getvalue(), name, title, summary, size)


def headline(axes: Axes, text: str) -> None:
    """A title above the axes, at their left edge."""
    axes.set_title(text, loc="left", pad=6, color=colour("ink"))


def blocks(axes: Axes, boxes: Iterable[tuple[float, float, float, float]], shade: str) -> None:
    """Filled rectangles `(left, low, right, high)` of one colour, as one compound path: many cost as little as one."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners: list[tuple[float, float]] = []
    for left, low, right, high in boxes:
        corners += [(left, low), (right, low), (right, high), (left, high), (left, low)]
    if corners:
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * (len(corners) // 5)
        # Limits are set by each plot; add_patch would work them out from every corner, which is slow.
        axes.add_artist(PathPatch(Path(corners, codes), facecolor=shade, linewidth=0))


def band(axes: Axes, edges: Sequence[float], low: Sequence[float], high: Sequence[float], shade: str) -> None:
    """A filled band in steps: `edges` has one value more than `low` and `high`; empty parts are not drawn."""
    boxes: list[tuple[float, float, float, float]] = []
    for index, (bottom, top) in enumerate(zip(low, high, strict=True)):
        if top <= bottom:
            continue
        if boxes and boxes[-1][1:] == (bottom, edges[index], top):
            boxes[-1] = (boxes[-1][0], bottom, edges[index + 1], top)
        else:
            boxes.append((edges[index], bottom, edges[index + 1], top))
    blocks(axes, boxes, shade)


def _dress(axes: Axes, size: tuple[int, int]) -> None:
    from matplotlib.ticker import AutoLocator, MaxNLocator

    if axes.get_position().bounds == (0, 0, 1, 1):
        left, right, bottom, top = 58 / size[0], 1 - 12 / size[0], 44 / size[1], 1 - 10 / size[1]
        axes.set_position((left, bottom, right - left, top - bottom))
    for axis in (axes.xaxis, axes.yaxis):
        # The default locator measures texts to find out how many ticks fit; five or six always do.
        if isinstance(axis.get_major_locator(), AutoLocator):
            axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colour("muted"))
    axes.tick_params(colors=colour("muted"), labelcolor=colour("ink"), length=3, width=0.8)
    axes.xaxis.label.set_color(colour("muted"))
    axes.yaxis.label.set_color(colour("muted"))


def _inline(svg: str, name: str, title: str, summary: str, size: tuple[int, int]) -> str:
    body = svg[svg.index("<svg") :]
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    # Matplotlib's own style sheet would reach the whole page.
    body = re.sub(r"<style[^>]*>.*?</style>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = _unique_ids(body, name)
    body = re.sub(r'\bd="([^"]*)"', lambda m: f'd="{_short_path(m[1])}"', body)
    body = re.sub(r"font(-family)?: ?([^;\"]*)", _page_font, body)
    body = _RESERVED.sub(lambda m: f"var(--{VARIABLES[int(m[1], 16)]})", body)
    labels = f'aria-labelledby="{name}-title {name}-summary"'
    return (
        f'<svg viewBox="0 0 {size[0]} {size[1]}" class="plot" role="img" {labels}>'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-summary">{escape(summary)}</desc>'
        f"{body.strip()}</svg>"
    )


def _unique_ids(body: str, name: str) -> str:
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    names = {old: f"{name}-{index}" for index, old in enumerate(sorted(used))}
    body = re.sub(r' id="([^"]*)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", body)
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + names[m[2]], body)


def _short_path(path: str) -> str:
    """The same path in tenths of a pixel, horizontal and vertical lines by one coordinate, no blanks to spare."""
    words = path.split()
    out: list[str] = []
    x = y = ""
    position = 0
    while position < len(words):
        command = words[position]
        length = _ARGUMENTS.get(command, 0)
        numbers = [_tenths(word) for word in words[position + 1 : position + 1 + length]]
        position += 1 + length
        if command != "L":
            out.append(command + " ".join(numbers))
        elif numbers[1] == y:
            out.append(f"H{numbers[0]}")
        elif numbers[0] == x:
            out.append(f"V{numbers[1]}")
        else:
            out.append(f"L{numbers[0]} {numbers[1]}")
        if numbers:
            x, y = numbers[-2:]
    return "".join(out)


def _tenths(number: str) -> str:
    return f"{float(number):.1f}".removesuffix(".0")


def _page_font(match: re.Match[str]) -> str:
    if match[1]:
        return "font-family: inherit"
    sizes = re.search(r"[\d.]+px", match[2])
    return f"font-size: {sizes[0]}" if sizes else "font-size: inherit"
