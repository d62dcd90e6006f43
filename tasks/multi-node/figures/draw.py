"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

INK = "#7a8594"  # read on white and on black
ONCE, MACHINE, PROCESS = "#d9822b", "#2b9e78", "#2f81c7"


def box(axes: Axes, x: float, y: float, width: float, height: float, color: str, words: str) -> None:
    """A rounded box with words in its middle."""
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", fill=False)
    shape.set_edgecolor(color)
    shape.set_linewidth(1.6)
    axes.add_patch(shape)
    axes.text(x + width / 2, y + height / 2, words, ha="center", va="center", color=color, linespacing=1.5)


def main() -> None:
    """Write machines.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "machines", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, axes = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    for node in range(2):
        left = 0.1 + node * 4.2
        box(axes, left, 1.15, 3.7, 2.5, INK, "")
        axes.text(left + 0.15, 3.42, f"machine {node}", color=INK, va="center")
        for local in range(2):
            words = f"RANK {2 * node + local}\nLOCAL_RANK {local}"
            box(axes, left + 0.15 + local * 1.75, 2.15, 1.6, 1.0, PROCESS, words)
        box(axes, left + 0.15, 1.3, 3.35, 0.6, MACHINE, "one download: by local rank 0")
    box(axes, 1.6, 0.1, 4.9, 0.65, ONCE, "one log, one checkpoint: by rank 0")
    axes.annotate("", (4.3, 2.65), (3.8, 2.65), arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 1.4})
    axes.annotate("", (1.95, 0.78), (1.95, 1.12), arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.4})
    axes.set_xlim(0, 8.2)
    axes.set_ylim(0, 3.8)
    axes.axis("off")
    figure.savefig(Path(__file__).parent / "machines.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
