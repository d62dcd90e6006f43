"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from math import cos, pi
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID = "#7a8594", "#7a859440"  # read on white and on black
BASE, K, WARMUP, STEPS = 0.006, 8, 30, 140


def rate(step: int, peak: float) -> float:
    """Up in a straight line from the old rate, down in a cosine."""
    if step < WARMUP:
        return BASE + (peak - BASE) * step / WARMUP
    return BASE + (peak - BASE) * 0.5 * (1 + cos(pi * (step - WARMUP) / (STEPS - WARMUP)))


def main() -> None:
    """Write schedules.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "schedules", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, axes = plt.subplots(figsize=(7.6, 3.0), layout="constrained")
    steps = range(STEPS + 1)
    for peak, color, name in (
        (BASE * K, "#2f81c7", "linear rule: 8 × 0.006"),
        (BASE * K**0.5, "#2b9e78", "square-root rule: 2.8 × 0.006"),
        (BASE, "#d9822b", "the old rate"),
    ):
        axes.plot(steps, [rate(s, peak) for s in steps], color=color, label=name, linewidth=1.8)
    axes.axvspan(0, WARMUP, color=INK, alpha=0.12, linewidth=0)
    axes.text(WARMUP / 2, 0.051, "warm-up", ha="center", color=INK)
    axes.set_xlabel("optimizer step", color=INK)
    axes.set_ylabel("learning rate", color=INK)
    axes.set_ylim(0, 0.056)
    axes.set_xlim(0, STEPS)
    axes.tick_params(colors=INK, length=0)
    axes.grid(visible=True, color=GRID)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.legend(frameon=False, labelcolor=INK, loc="upper right")
    figure.savefig(Path(__file__).parent / "schedules.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
