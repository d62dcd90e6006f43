"""What `gradient-descent` is held against: the same points, and training runs of its own at the same settings.

Runs only in the scorer. It fits the line itself, nine times for each row with another order of the points, and looks
only at the two tables that a submission left.
"""

import random
from collections.abc import Sequence
from typing import Any

import torch

BATCH_SIZES = (1, 8, 64, 512)
_NUM_POINTS = 512
_STOP = 1e-3
"""An epoch that changes the loss by less than this share of it is the last."""
_SEEDS = 9
_DIVERGED = 1e6
_MAX_EPOCHS = 300
_W_OFF, _B_OFF = 0.6, 0.4
"""How far w and b may be from the best fit: noise at batch size 1 stays well below."""
_FLAT = 0.15
"""Up to this share of the right slope a line is flat: what noise alone makes of it."""
_ROUNDED = 1e-4
"""Relative difference of one loss that two tables hold."""
_SAME = 2e-3
"""Relative difference of two losses that counts as none: float32 against float64, and a table's rounding."""

Answer = tuple[float | None, str, str]


def _points() -> tuple[list[float], list[float]]:
    """The skeleton's points: y = 10 x + 2 + noise."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(_NUM_POINTS, generator=generator) * 2 - 1
    y = 10 * x + 2 + torch.randn(_NUM_POINTS, generator=generator)
    return x.tolist(), y.tolist()


_X, _Y = _points()


def _loss(w: float, b: float) -> float:
    return sum((w * x + b - y) ** 2 for x, y in zip(_X, _Y, strict=True)) / _NUM_POINTS


def _best_fit() -> tuple[float, float]:
    mean_x, mean_y = sum(_X) / _NUM_POINTS, sum(_Y) / _NUM_POINTS
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(_X, _Y, strict=True))
    w = over / sum((x - mean_x) ** 2 for x in _X)
    return w, mean_y - w * mean_x


def _train(batch_size: int, rate: float, seed: int) -> tuple[int, float]:
    """Epochs until the loss stands still, and the loss then; infinite where it grows out of hand."""
    order, shuffles = list(range(_NUM_POINTS)), random.Random(seed)
    w = b = 0.0
    before = _loss(w, b)
    for epoch in range(1, _MAX_EPOCHS + 1):
        shuffles.shuffle(order)
        for first in range(0, _NUM_POINTS, batch_size):
            batch = order[first : first + batch_size]
            by_w = by_b = 0.0
            for i in batch:
                off = w * _X[i] + b - _Y[i]
                by_w += off * _X[i]
                by_b += off
            w -= rate * 2 * by_w / len(batch)
            b -= rate * 2 * by_b / len(batch)
        after = _loss(w, b) if abs(w) + abs(b) < _DIVERGED else float("inf")
        if after > _DIVERGED or abs(before - after) < _STOP * before:
            return epoch, after
        before = after
    return _MAX_EPOCHS, before


def examine(left: dict[str, Any], run: dict[str, float]) -> dict[str, Answer]:
    """Answer `line`, `counts` and `own-runs` from `table.csv`, and `stopping` from both tables.

    `trained` is nobody's question: it says whether the numbers were computed at all.
    """
    answers: dict[str, Answer] = {}
    if "table.csv" in left:
        rows = {row["batch_size"]: row for row in left["table.csv"]}
        curves = left.get("losses.csv", ())
        late = _late_loss(rows)
        denied = {size: _own_runs(size, rows.get(size)) for size in BATCH_SIZES}

        def line(size: int, row: dict[str, Any] | None) -> str:
            wrong = _line(size, row)
            if not wrong or row is None:
                return wrong
            return late or (stopping[1] if _unfinished(size, row, curves) else wrong)

        def own_runs(size: int, row: dict[str, Any] | None) -> str:
            # A training that began elsewhere, or ended by another rule or loss, takes other updates: one fault, told
            # once.
            wrong = denied[size]
            if not wrong or row is None:
                return wrong
            early = (not _line(size, row) and _ended(size, row, curves)) or _unfinished(size, row, curves)
            return _begun(size, rows, curves) or late or (stopping[1] if early else wrong)

        def stops(size: int, row: dict[str, Any] | None) -> str:
            wrong = _stops(size, row, rows, curves)
            return wrong or (late if denied[size] and row is not None else "")

        right = "Training ends with the first epoch that changes the loss by under 0.1 %"
        stopping = _each(rows, stops, "losses.csv", right)
        answers["trained"] = _trained(rows)
        answers["line"] = _each(rows, line, "table.csv", "Each row's line is the one through the points")
        answers["counts"] = _counts(rows, run)
        answers["own-runs"] = _each(
            rows, own_runs, "table.csv", f"All rows are what {_SEEDS} runs of the scorer's own show"
        )
        if "losses.csv" in left:
            answers["stopping"] = stopping
    return answers


def _each(rows: dict[int, dict[str, Any]], ask: Any, file: str, right: str) -> Answer:
    """Ask about every batch size; the first thing that is wrong is told."""
    wrong = [said for size in BATCH_SIZES if (said := ask(size, rows.get(size)) or "")]
    share = 1 - len(wrong) / len(BATCH_SIZES)
    return (share, wrong[0] if wrong else f"{right}.", file)


def _trained(rows: dict[int, dict[str, Any]]) -> Answer:
    """Somewhere the loss is that of w and b: who makes up one number would have to compute the other."""
    sane = {size: row for size, row in rows.items() if abs(row["w"]) + abs(row["b"]) < _DIVERGED}
    fitting = [size for size, row in sane.items() if not _other_loss(size, row)]
    if fitting:
        return (1.0, f"At batch size {fitting[0]} the loss is that of w and b.", "table.csv")
    return (0.0, "No row's loss is that of its w and b, so nothing was computed.", "table.csv")


def _missing(size: int) -> str:
    return f"table.csv has no row for batch size {size}."


def _line(size: int, row: dict[str, Any] | None) -> str:
    if row is None:
        return _missing(size)
    best_w, best_b = _best_fit()
    if abs(row["w"] - best_w) > _W_OFF or abs(row["b"] - best_b) > _B_OFF:
        return (
            f"Batch size {size} ends with y = {row['w']:.2f} x + {row['b']:.2f}; the line through these points is "
            f"y = {best_w:.2f} x + {best_b:.2f}.{_learned(row, best_w, best_b)}"
        )
    return _other_loss(size, row)


def _learned(row: dict[str, Any], best_w: float, best_b: float) -> str:
    """What a wrong line looks like, as a sentence after a space; "" unknown."""
    w, b = row["w"], row["b"]
    if w == 0 and b == 0:
        return " That is where it began: no update came to the w and b that are told."
    if b == 0 and abs(w - best_w) <= _W_OFF:
        return " w is right and b is where it began: no update came to it."
    if abs(b - best_b) <= _B_OFF and abs(w) < _FLAT * best_w:
        return " b is right and w is near 0: nothing of x came into it, as if each y stood beside another point's x."
    if abs(w) + abs(b) > _DIVERGED or _loss(w, b) > _loss(0, 0):
        return " That is farther off than where it began: its updates were too large, or not against this gradient."
    return ""


def _other_loss(size: int, row: dict[str, Any]) -> str:
    loss = _loss(row["w"], row["b"])
    if abs(row["loss"] - loss) <= _SAME * loss:
        return ""
    return f"Batch size {size} reports a loss of {row['loss']:.4f}; over all points, its w and b have {loss:.4f}."


def _after(rate: float, updates: int) -> tuple[float, float] | None:
    """W and b after so many updates with all points; None where they grow out of hand."""
    w = b = 0.0
    for _ in range(updates):
        offs = [w * x + b - y for x, y in zip(_X, _Y, strict=True)]
        by_w = sum(off * x for off, x in zip(offs, _X, strict=True))
        w, b = w - rate * 2 * by_w / _NUM_POINTS, b - rate * 2 * sum(offs) / _NUM_POINTS
        if abs(w) + abs(b) > _DIVERGED:
            return None
    return w, b


def _unfinished(size: int, row: dict[str, Any], told: Sequence[dict[str, Any]]) -> bool:
    """Whether a line is off for the one reason that training stopped too early: only whole batches leave no doubt."""
    if size != _NUM_POINTS or not 0 < row["learning_rate"] < 10 or not 0 < row["updates"] <= _MAX_EPOCHS:
        return False
    came = _after(row["learning_rate"], row["updates"])
    told_so = bool(came) and abs(row["w"] - came[0]) + abs(row["b"] - came[1]) < _SAME * 10
    return told_so and bool(_ended(size, row, told))


def _late_loss(rows: dict[int, dict[str, Any]]) -> str:
    """That losses are of weights from before the last epoch, as a sentence; "" where they are not.

    Only whole batches leave it no doubt: there such a loss is the one from before the last update.
    """
    row = rows.get(_NUM_POINTS)
    if row is None or not 0 < row["learning_rate"] < 10 or not 0 < row["updates"] <= _MAX_EPOCHS:
        return ""
    came = _after(row["learning_rate"], row["updates"] - 1)
    if came is None or abs(row["w"]) + abs(row["b"]) > _DIVERGED:
        return ""
    before, after = _loss(*came), _loss(row["w"], row["b"])
    if abs(row["loss"] - before) > _SAME * before or abs(before - after) <= 2 * _SAME * before:
        return ""
    return (
        f"Batch size {_NUM_POINTS} reports a loss of {row['loss']:.4g}, which is that from before its last update; "
        f"with the w and b of its row it is {after:.4g}. A loss that is taken before an epoch's updates, or added up "
        "while they are made, is not that of the w and b at its end."
    )


def _counts(rows: dict[int, dict[str, Any]], run: dict[str, float]) -> Answer:
    seconds = sum(row["seconds"] for row in rows.values())

    def ask(size: int, row: dict[str, Any] | None) -> str:
        if row is None:
            return _missing(size)
        per_epoch = _NUM_POINTS // size
        if not row["updates"] or row["updates"] % per_epoch:
            return (
                f"Batch size {size} counts {row['updates']:,} updates, which is no number of whole epochs: "
                f"one has {per_epoch:,}."
            )
        if row["samples"] != row["updates"] * size:
            return (
                f"Batch size {size} made {row['updates']:,} updates with {size} points each and counts "
                f"{row['samples']:,} samples, not {row['updates'] * size:,}."
            )
        if not row["seconds"] > 0 or seconds > run["wall_s"] + 1:
            return f"The table adds up to {seconds:.2f} s of training in a run of {run['wall_s']:.2f} s."
        return ""

    return _each(rows, ask, "table.csv", "Updates, samples and seconds fit together")


def _own_runs(size: int, row: dict[str, Any] | None) -> str:
    if row is None:
        return _missing(size)
    rate = row["learning_rate"]
    if not 0 < rate < 10:
        return f"Batch size {size} was trained with a learning rate of {rate:g}, as its row says."
    # All points in every update leave nothing to chance.
    runs = [_train(size, rate, seed) for seed in range(_SEEDS if size < _NUM_POINTS else 1)]
    per_epoch = _NUM_POINTS // size
    fewest, most = (pick(epochs for epochs, _ in runs) * per_epoch for pick in (min, max))
    losses = [loss for _, loss in runs]
    said = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    if size == _NUM_POINTS:
        low, high = fewest - 1.0, most + 1.0
    else:
        low, high = fewest / 2, most * 2.0
    at = f"At batch size {size} and learning rate {rate:g} the scorer's own runs"
    off = not low <= row["updates"] <= high or not min(losses) * 0.99 <= row["loss"] <= max(losses) * 1.1
    if off and (wrong := _line(size, row)):
        # A line that is not the points' has no loss of theirs either: one fault, told once.
        return wrong
    if not low <= row["updates"] <= high:
        return f"{at} take {said} updates; the table says {row['updates']:,}.{_scaled(size, row)}"
    if not min(losses) * 0.99 <= row["loss"] <= max(losses) * 1.1:
        return f"{at} end at a loss of {min(losses):.3f} to {max(losses):.3f}; the table says {row['loss']:.3f}."
    return ""


_FACTORS = {0.5: "half as large", 2.0: "2 times as large"}


def _scaled(size: int, row: dict[str, Any]) -> str:
    """By which factor gradients explain a row, as a sentence after a space: only whole batches leave it no doubt."""
    for factor, words in _FACTORS.items() if size == _NUM_POINTS else ():
        epochs, loss = _train(size, row["learning_rate"] * factor, 0)
        if abs(row["updates"] - epochs) <= 1 and abs(row["loss"] - loss) <= _SAME * loss:
            return f" With gradients {words} the scorer's take {epochs:,}, too."
    return ""


def _begun(size: int, rows: dict[int, dict[str, Any]], told: Sequence[dict[str, Any]]) -> str:
    """A size whose first loss is another one's last, as a sentence; "" where training began at w = b = 0."""
    first = next((r["loss"] for r in told if (r["batch_size"], r["epoch"]) == (size, 0)), None)
    start = _loss(0, 0)
    if first is None or abs(first - start) <= _SAME * start:
        return ""
    for other, row in rows.items():
        if other != size and abs(first - row["loss"]) <= _ROUNDED * row["loss"]:
            return (
                f"Batch size {size} begins at a loss of {first:.4g}, where batch size {other} ended; "
                f"at w = b = 0 it is {start:.4g}."
            )
    return ""


def _stops(
    size: int, row: dict[str, Any] | None, rows: dict[int, dict[str, Any]], told: Sequence[dict[str, Any]]
) -> str:
    """What is wrong with where a training begins and ends, by the losses of its epochs."""
    if row is None:
        return _missing(size)
    epochs = row["updates"] // (_NUM_POINTS // size)
    curve = _curve(size, told)
    if len(curve) != epochs + 1 or max(curve) != epochs:
        return (
            f"Batch size {size} took {epochs} epochs, so losses.csv has rows for the epochs 0 to {epochs}; "
            f"there are {len(curve)}."
        )
    if begun := _begun(size, rows, told):
        return begun
    start, end = _loss(0, 0), curve[epochs]
    if abs(curve[0] - start) > _SAME * start or abs(end - row["loss"]) > _SAME * abs(end):
        return (
            f"Batch size {size}: losses.csv begins at {curve[0]:.3f} and ends at {end:.3f}; at w = b = 0 the loss "
            f"is {start:.3f}, and the table ends at {row['loss']:.3f}."
        )
    return _ended(size, row, told)


def _curve(size: int, told: Sequence[dict[str, Any]]) -> dict[int, float]:
    return {r["epoch"]: r["loss"] for r in told if r["batch_size"] == size}


def _ended(size: int, row: dict[str, Any], told: Sequence[dict[str, Any]]) -> str:
    """That a training stopped too early or too late, as a sentence; "" where it did not, or nobody can tell."""
    epochs, curve = row["updates"] // (_NUM_POINTS // size), _curve(size, told)
    if len(curve) != epochs + 1 or max(curve) != epochs:
        return ""
    changes = [abs(curve[e] - curve[e - 1]) / abs(curve[e - 1] or 1.0) for e in range(1, epochs + 1)]
    # A table is rounded: what is as good as 0.1 % passes for either side of it.
    early = next((e for e, change in enumerate(changes[:-1], start=1) if change < _STOP * 0.9), None)
    if early is not None:
        return (
            f"Batch size {size} goes on to epoch {epochs}, though epoch {early} changed the loss by "
            f"{changes[early - 1]:.3%} already."
        )
    if changes and changes[-1] > _STOP * 1.1 and epochs < _MAX_EPOCHS:
        rose = (
            ": it rose, and a change that is below 0 is no small one" if curve[epochs] > curve[epochs - 1] else ""
        )
        stops = f"Batch size {size} stops at epoch {epochs}"
        return f"{stops}, which still changed the loss by {changes[-1]:.2%}{rose}."
    return ""
