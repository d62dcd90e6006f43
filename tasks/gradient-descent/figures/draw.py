"""Draw the picture of this folder: `python draw.py`. A second run writes the same bytes."""

from pathlib import Path

import matplotlib as mpl
import torch

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, GRID = "#7a8594", "#7a859440"  # read on white and on black
COLORS = {1: "#d9822b", 8: "#b08d00", 64: "#2b9e78", 512: "#2f81c7"}
RATES = {1: 0.002, 8: 0.02, 64: 0.1, 512: 0.3}
NUM_POINTS, EPOCHS = 512, 30


def curve(batch_size: int) -> tuple[list[int], list[float]]:
    """Updates made and the loss over all points after them, some forty looks at a training."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(NUM_POINTS, generator=generator) * 2 - 1
    y = 10 * x + 2 + torch.randn(NUM_POINTS, generator=generator)
    w = b = torch.zeros(())
    updates, losses = [0], [((w * x + b - y) ** 2).mean().item()]
    wanted = max(1, NUM_POINTS // batch_size // 8)
    made = 0
    for _ in range(EPOCHS if batch_size > 64 else 5):
        for batch in torch.randperm(NUM_POINTS, generator=generator).split(batch_size):
            off = w * x[batch] + b - y[batch]
            w, b = w - RATES[batch_size] * 2 * (off * x[batch]).mean(), b - RATES[batch_size] * 2 * off.mean()
            made += 1
            if made % wanted == 0:
                updates.append(made)
                losses.append(((w * x + b - y) ** 2).mean().item())
    return updates, losses


def main() -> None:
    """Write batch_sizes.svg beside this file."""
    mpl.rcParams.update({"svg.hashsalt": "batch_sizes", "svg.fonttype": "path", "text.color": INK, "font.size": 11})
    figure, both = plt.subplots(1, 2, figsize=(7.6, 3.2), sharey=True, layout="constrained")
    for batch_size, color in COLORS.items():
        updates, losses = curve(batch_size)
        name = {1: "batch size 1 (SGD)", 512: "512 (gradient descent)"}.get(batch_size, str(batch_size))
        both[0].plot(updates[1:], losses[1:], color=color, label=name)
        both[1].plot([u * batch_size for u in updates[1:]], losses[1:], color=color)
    for axes, words in zip(both, ("updates", "samples"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(words, color=INK)
        axes.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
        axes.minorticks_off()
        axes.tick_params(colors=INK, length=0)
        axes.grid(visible=True, color=GRID)
        for side in axes.spines.values():
            side.set_visible(False)
    both[0].set_ylabel("loss over all points", color=INK)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, labelcolor=INK)
    figure.savefig(Path(__file__).parent / "batch_sizes.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
