"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID = "#7a8594", "#7a859440"  # read on white and on black
PARTS = (("weight", 4, "#2f81c7"), ("gradient", 4, "#2b9e78"), ("Adam's two averages", 8, "#d9822b"))
BARS = (("DDP, any number", 1), ("FSDP, 2 ranks", 2), ("FSDP, 4 ranks", 4), ("FSDP, 8 ranks", 8))


def main() -> None:
    """Write memory.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "memory", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, axes = plt.subplots(figsize=(7.6, 2.7), layout="constrained")
    for row, (_, ranks) in enumerate(BARS):
        left = 0.0
        for name, num_bytes, color in PARTS:
            axes.barh(row, num_bytes / ranks, left=left, height=0.6, color=color, label=name if row == 0 else None)
            left += num_bytes / ranks
        axes.text(left + 0.2, row, f"{left:g}", va="center", color=INK)
    axes.set_yticks(range(len(BARS)), [name for name, _ in BARS], color=INK)
    axes.invert_yaxis()
    axes.set_xlabel("bytes on one rank for each parameter", color=INK)
    axes.set_xlim(0, 18)
    axes.tick_params(colors=INK, length=0)
    axes.grid(visible=True, axis="x", color=GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, labelcolor=INK)
    figure.savefig(Path(__file__).parent / "memory.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
