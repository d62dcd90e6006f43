"""What `gradient-averaging` is held against: the gradient of the whole batch, and each share's own loss.

Runs only in the scorer. It computes both itself, from the numbers that the skeleton makes up by formula, and never
looks at a submission: only at the tensors and the table that one left.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

SHARES = {1: [60], 2: [42, 18], 3: [35, 20, 5], 4: [31, 17, 11, 1]}
"""Samples of each rank, by world size; the skeleton's own."""

_TOLERANCE = 1e-6
"""Of the largest element of the whole batch's gradient."""


def _toy_model() -> nn.Sequential:
    """The skeleton's network, with its weights."""
    model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (number + 2))
            parameter.copy_(waves.reshape(parameter.shape) / 2)
    return model


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    """The skeleton's 60 samples: inputs (60, 10) and targets (60, 5), float64."""
    inputs = torch.sin(torch.arange(600, dtype=torch.float64) ** 2).reshape(60, 10)
    return inputs, torch.cos(inputs[:, :5].cumsum(dim=1) * 3)


def _gradient(first: int, last: int) -> tuple[float, dict[str, torch.Tensor]]:
    """Mean loss over samples `first` to `last` (not included), and its gradient by parameter name."""
    model, (inputs, targets) = _toy_model(), _batch()
    loss = F.mse_loss(model(inputs[first:last]), targets[first:last])
    loss.backward()
    return loss.item(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def examine(left: dict[str, Any], run: dict[str, float]) -> dict[str, tuple[float | None, str, str]]:
    """Answer `shares` and `gradient` for every world size that the launched ranks allow.

    Args:
        left: `gradients.pt`, tensors by `<world size>/<parameter>`; `shares.csv`, one row per world size and rank.
        run: `world_size` says how many ranks were started.
    """
    sizes = [size for size in SHARES if size <= run["world_size"]]
    answers: dict[str, tuple[float | None, str, str]] = {}
    if "shares.csv" in left:
        answers["shares"] = (*_shares(left["shares.csv"], sizes), "shares.csv")
    if "gradients.pt" in left:
        answers["gradient"] = (*_gradients(left["gradients.pt"], sizes), "gradients.pt")
    return answers


def _shares(rows: list[dict[str, Any]], sizes: list[int]) -> tuple[float, str]:
    told = {(row["world_size"], row["rank"]): row for row in rows}
    num_right = 0
    wrong = ""
    for size in sizes:
        first, right = 0, True
        for rank, samples in enumerate(SHARES[size]):
            loss, row = _gradient(first, first + samples)[0], told.get((size, rank))
            first += samples
            of = f"Rank {rank} of {size}"
            if row is None:
                said = f"{of} has no row in shares.csv."
            elif row["samples"] != samples:
                said = f"{of} says that it had {row['samples']} samples; its share is {samples}."
            elif abs(row["loss"] - loss) > _TOLERANCE * max(1.0, abs(loss)):
                said = f"{of} tells a loss of {row['loss']:.6f}; the mean over its {samples} samples is {loss:.6f}."
            else:
                continue
            right, wrong = False, wrong or said
        num_right += right
    if not wrong:
        return 1.0, f"At {_named(sizes)} each rank's loss is that of its own share."
    return num_right / len(sizes), wrong


def _gradients(tensors: dict[str, torch.Tensor], sizes: list[int]) -> tuple[float, str]:
    _, whole = _gradient(0, 60)
    scale = max(float(g.abs().max()) for g in whole.values())
    num_right, wrong, largest = 0, "", 0.0
    for size in sizes:
        error, said = 0.0, ""
        for name, want in whole.items():
            got = tensors.get(f"{size}/{name}")
            if got is None:
                error, said = float("inf"), f"gradients.pt has no `{size}/{name}`."
                break
            if got.shape != want.shape:
                error, said = float("inf"), f"`{size}/{name}` has shape {tuple(got.shape)}, not {tuple(want.shape)}."
                break
            if got.dtype != want.dtype:
                kept = str(got.dtype).removeprefix("torch.")
                error = float("inf")
                said = f"`{size}/{name}` is {kept}; weights and batch are float64, and so is their gradient."
                break
            off = float((got.double() - want).abs().max()) / scale
            # NaN compares as nothing at all, and must not pass for that.
            error = max(error, off) if off == off else float("inf")
            said = f"At world size {size} the gradient is off by {error:.1e} of its largest element"
            said += _guess(tensors, size)
        if error <= _TOLERANCE:
            num_right, largest = num_right + 1, max(largest, error)
        else:
            wrong = wrong or said
    if not wrong:
        return 1.0, f"At {_named(sizes)} the gradient is that of the whole batch, to {max(largest, 1e-16):.0e}."
    return num_right / len(sizes), wrong


def _guess(tensors: dict[str, torch.Tensor], size: int) -> str:
    """What the wrong gradient looks like, as the end of a sentence."""
    first, parts = 0, []
    for samples in SHARES[size]:
        parts.append(_gradient(first, first + samples)[1])
        first += samples
    likely = {
        ": it is the plain mean of the ranks' gradients, in which a sample of a small share weighs more.": 1 / size,
        ": it is the sum of the ranks' gradients, without weights.": 1.0,
    }
    got = torch.cat([tensors[f"{size}/{n}"].double().flatten() for n in parts[0] if f"{size}/{n}" in tensors])
    for words, weight in likely.items():
        guess = weight * torch.cat([torch.stack([p[n] for p in parts]).sum(dim=0).flatten() for n in parts[0]])
        if got.shape == guess.shape and torch.allclose(got, guess, rtol=1e-5, atol=1e-9):
            return words
    return "; 1e-06 is allowed."


def _named(sizes: list[int]) -> str:
    words = ", ".join(str(size) for size in sizes[:-1])
    return f"world sizes {words} and {sizes[-1]}" if words else f"world size {sizes[0]}"
