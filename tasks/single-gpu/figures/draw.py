"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID = "#7a8594", "#7a859440"  # read on white and on black
PARTS = {"weights": "#2f81c7", "gradients": "#2b9e78", "Adam's state": "#b08d00", "activations": "#d9822b"}
WEIGHTS = 20_490 * 4
KEPT_PER_IMAGE = 1_407_744 // 64
"""Bytes that autograd keeps for one image, as the accepted submissions measure it."""
BATCH_SIZES = (2, 4, 16, 32, 64)


def main() -> None:
    """Write memory.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "memory", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, axes = plt.subplots(figsize=(7.2, 3.1), layout="constrained")
    below = [0.0] * len(BATCH_SIZES)
    for name, color in PARTS.items():
        times = {"weights": 1, "gradients": 1, "Adam's state": 2}.get(name)
        heights = [(WEIGHTS * times if times else KEPT_PER_IMAGE * size) / 1e6 for size in BATCH_SIZES]
        axes.bar(range(len(BATCH_SIZES)), heights, 0.6, bottom=below, color=color, label=name)
        below = [b + h for b, h in zip(below, heights, strict=True)]
    axes.set_xticks(range(len(BATCH_SIZES)), [str(size) for size in BATCH_SIZES])
    axes.set_xlabel("batch size", color=INK)
    axes.set_ylabel("MB", color=INK)
    axes.tick_params(colors=INK, length=0)
    axes.yaxis.grid(visible=True, color=GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.legend(frameon=False, labelcolor=INK, reverse=True)
    figure.savefig(Path(__file__).parent / "memory.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
