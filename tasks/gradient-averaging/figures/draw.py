"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID = "#7a8594", "#7a859440"  # read on white and on black
PLAIN, RIGHT = "#d9822b", "#2f81c7"
SHARES = [31, 17, 11, 1]


def main() -> None:
    """Write weights.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "weights", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    places = range(len(SHARES))
    axes.bar([p - 0.2 for p in places], [0.25] * 4, 0.38, color=PLAIN, label="plain mean: 1/4 for each rank")
    axes.bar(
        [p + 0.2 for p in places], [m / 60 for m in SHARES], 0.38, color=RIGHT, label="right: its share of the samples"
    )
    for place, samples in zip(places, SHARES, strict=True):
        axes.text(place + 0.2, samples / 60 + 0.012, f"{samples}/60", ha="center", color=RIGHT)
    names = [f"rank {p}\n{m} sample{'s' if m > 1 else ''}" for p, m in zip(places, SHARES, strict=True)]
    axes.set_xticks(list(places), names)
    axes.set_ylabel("weight of its gradient", color=INK)
    axes.set_ylim(0, 0.62)
    axes.tick_params(colors=INK, length=0)
    axes.yaxis.grid(visible=True, color=GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.legend(frameon=False, labelcolor=INK)
    figure.savefig(Path(__file__).parent / "weights.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
