"""What `gradient-averaging` is held against: the gradient of the whole batch, and each share's own loss.

Runs only in the scorer. It computes both itself, from the numbers that the skeleton makes up by formula, and never
looks at a submission: only at the tensors and the table that one left. Where these are wrong it computes what other
ways would have come to, and says which of them the numbers are.
"""

from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from grader.model.run_account import Exchange, RunAccount

SHARES = {1: [60], 2: [42, 18], 3: [35, 20, 5], 4: [31, 17, 11, 1]}
"""Samples of each rank, by world size; the skeleton's own."""

_WHOLE = 60
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


@cache
def _gradient(first: int, last: int) -> tuple[float, dict[str, torch.Tensor]]:
    """Mean loss over samples `first` to `last` (not included), and its gradient by parameter name."""
    model, (inputs, targets) = _toy_model(), _batch()
    loss = F.mse_loss(model(inputs[first:last]), targets[first:last])
    loss.backward()
    return loss.item(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@cache
def _torn(inputs_from: int, targets_from: int, samples: int) -> tuple[float, torch.Tensor]:
    """Mean loss of inputs beside the targets of other samples, and its gradient in one vector."""
    model, (inputs, targets) = _toy_model(), _batch()
    beside = targets[targets_from : targets_from + samples]
    loss = F.mse_loss(model(inputs[inputs_from : inputs_from + samples]), beside)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def _torn_pairs(size: int, rank: int) -> Iterator[tuple[int, int]]:
    """Where a rank's inputs and targets may begin if one of both is its share and the other is not."""
    own, last = _first(size, rank), _WHOLE - SHARES[size][rank]
    yield from ((own, other) for other in range(last + 1) if other != own)
    yield from ((other, own) for other in range(last + 1) if other != own)


def _said_of(pair: tuple[int, int], samples: int) -> str:
    inputs, targets = (f"{first} to {first + samples - 1}" for first in pair)
    return f"the inputs of samples {inputs} beside the targets of samples {targets}"


def _loss(size: int, rank: int) -> float:
    first = _first(size, rank)
    return _gradient(first, first + SHARES[size][rank])[0]


def _flat(first: int, last: int) -> torch.Tensor:
    return torch.cat([g.flatten() for g in _gradient(first, last)[1].values()])


def _first(size: int, rank: int) -> int:
    return sum(SHARES[size][:rank])


def examine(left: dict[str, Any], run: RunAccount) -> dict[str, tuple[float | None, str, str]]:
    """Answer `shares` and `gradient` for every world size that the launched ranks allow.

    Args:
        left: `gradients.pt`, tensors by `<world size>/<parameter>`; `shares.csv`, one row per world size and rank.
        run: how many ranks were started, and what each put into what they exchanged.
    """
    sizes = [size for size in SHARES if size <= run["world_size"]]
    rows = {(row["world_size"], row["rank"]): row for row in left.get("shares.csv", ())}
    answers: dict[str, tuple[float | None, str, str]] = {}
    if "shares.csv" in left:
        brought = _absent(rows, sizes, run) or _of_everybody(rows, sizes, run)
        answers["shares"] = (*(brought or _shares(rows, sizes)), "shares.csv")
    changed = _changed(rows, sizes, run)
    if changed and answers["shares"][0] != 1.0:
        answers["shares"] = (answers["shares"][0], changed, "shares.csv")
    if "gradients.pt" in left:
        taken = _taken(rows, sizes)
        answers["gradient"] = (
            *_gradients(left["gradients.pt"], sizes, taken, _torn_ranks(rows, sizes), int(run["world_size"])),
            "gradients.pt",
        )
        if changed and answers["gradient"][0] != 1.0:
            answers["gradient"] = (answers["gradient"][0], changed, "gradients.pt")
    return answers


def _same(told: float, value: float) -> bool:
    return abs(told - value) <= _TOLERANCE * max(1.0, abs(value))


def _shares(rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int]) -> tuple[float, str]:
    num_right = 0
    wrong, losses = "", []
    for size in sizes:
        right = True
        for rank, samples in enumerate(SHARES[size]):
            loss, row = _loss(size, rank), rows.get((size, rank))
            of = f"Rank {rank} of {size}"
            if row is None:
                said = f"{of} has no row in shares.csv."
            elif row["samples"] != samples:
                said = f"{of} says that it had {row['samples']} samples; its share is {samples}."
            elif not _same(row["loss"], loss):
                said = f"{of} tells a loss of {row['loss']:.6f}; the mean over its {samples} samples is {loss:.6f}."
                losses.append((size, rank, row["loss"]))
            else:
                continue
            right, wrong = False, wrong or said
        num_right += right
    if not wrong:
        return 1.0, f"At {_named(sizes)} each rank's loss is that of its own share."
    return num_right / len(
        sizes
    ), f"{wrong} {_other_losses(losses)}".strip() if "tells a loss" in wrong else wrong


def _changed(rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int], run: RunAccount) -> str:
    """That steps were taken between the rounds, where first losses are right, and no later one is, or of any way known.

    The same sentence for losses and gradients: it is one fault.
    """
    if not run.get("steps"):
        return ""
    told = {
        size: [(size, rank, rows[size, rank]["loss"]) for rank in range(size) if (size, rank) in rows]
        for size in sizes
    }
    right = [size for size in sizes if all(_same(loss, _loss(k, rank)) for k, rank, loss in told[size])]
    off = [size for size in sizes if size not in right]
    unknown = all(
        not _same(loss, _loss(k, rank)) and next(_ways(k, rank, loss), None) is None
        for size in off
        for k, rank, loss in told[size]
    )
    # Rounds go up or down; what has changed stays so.
    first = right in (sizes[: len(right)], sizes[-len(right) :])
    if not right or not off or not first or not unknown or not all(len(told[size]) == size for size in sizes):
        return ""
    kinds = " and ".join(sorted({f"`{one.kind}`" for one in run.updates if one.kind}))
    return (
        f"At {_named(right)} losses are those of the weights as they are made, at {_named(off)} of others: the weights "
        f"changed between the rounds. {kinds or 'The script'} took {int(run['steps'])} steps."
    )


_ROUNDED = 1e-10
"""Of a number, by which another order of sums may change it in float64."""
_LITTLE = 0.01
"""Of the largest element of a share's weighted gradient: who never puts in as much keeps its share to itself."""


def _absent(
    rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int], run: RunAccount
) -> tuple[float, str] | None:
    """A rank that says it had samples and brought next to nothing wherever it brought as much as gradients are."""
    gradient = _gradient_bytes()
    for rank, own, put in _brought(rows, sizes, run):
        worth = [SHARES[size][rank] / _WHOLE * _largest(size, rank) for size in own]
        empty = [e for e in put if (e.largest or 0.0) < _LITTLE * min(worth)]
        brought = any((e.bytes or 0) >= gradient for e in put if e not in empty)
        if not brought and sum(e.bytes or 0 for e in empty) >= gradient * len(own):
            size, most = own[-1], max(e.largest or 0.0 for e in empty)
            line = max(empty, key=lambda e: e.bytes or 0)
            return 1 - len(own) / len(sizes), (
                f"Rank {rank} of {size} says that it had {SHARES[size][rank]} samples, but it brought "
                f"{f'no number above {most:.1g}' if most else 'nothing but zeros'} into the `{line.name}` at "
                f"{line.where}: no gradient of its share is in the sum."
            )
    return None


def _of_everybody(
    rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int], run: RunAccount
) -> tuple[float, str] | None:
    """A rank that brought the gradient of the whole batch, with a weight, wherever it brought as much as gradients are.

    Weighted sums of one and the same gradient are right whatever the shares are: nobody needs to have computed one.
    """
    whole = float(_flat(0, _WHOLE).abs().max())
    for rank, own, put in _brought(rows, sizes, run):
        weights = {f"{SHARES[size][rank]}/{_WHOLE}": SHARES[size][rank] / _WHOLE for size in own}
        weights |= {f"1/{size}": 1 / size for size in own} | {"1": 1.0}
        large = [e for e in put if (e.bytes or 0) >= _gradient_bytes()]
        found = [next((w for w, of in weights.items() if _is(e.largest, of * whole)), "") for e in large]
        # Rank 0 has all of them at world size 1, and the largest number of a line is told of all its calls.
        if rank and found and all(found):
            size, line = own[-1], large[0]
            return 1 - len(own) / len(sizes), (
                f"Rank {rank} of {size} says that it had {SHARES[size][rank]} samples, but what it brought into the "
                f"`{line.name}` at {line.where} is the gradient of all {_WHOLE}, times {found[0]}: no gradient of its "
                "share is in the sum."
            )
    return None


def _brought(
    rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int], run: RunAccount
) -> Iterator[tuple[int, list[int], list[Exchange]]]:
    """Ranks that say they had a share of several, the world sizes that it was of, and what they put into exchanges."""
    for account in run.ranks:
        rank = account.rank
        own = [size for size in sizes if size > max(1, rank) and (size, rank) in rows]
        # What wrappers exchange on their own nobody looked at.
        if own and account.complete and not account.wrappers:
            mine = (e for e in run.exchanges if e.rank == rank and not e.receives)
            yield rank, own, [e for e in mine if e.largest is not None]


def _gradient_bytes() -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in _toy_model().parameters())


def _is(largest: float | None, value: float) -> bool:
    """Whether the largest element is this number, but for rounding in float64."""
    return largest is not None and abs(largest - value) <= _ROUNDED * value


def _largest(size: int, rank: int) -> float:
    """Largest element of the gradient of a rank's own share."""
    first = _first(size, rank)
    return float(_flat(first, first + SHARES[size][rank]).abs().max())


def _other_losses(losses: list[tuple[int, int, float]]) -> str:
    """What the wrong losses are, as a sentence: of all of them, or else of the first; "" where nobody knows."""
    for asked in (losses, losses[:1]):
        known = [dict(_ways(size, rank, told)) for size, rank, told in asked]
        shared = [way for way in known[0] if all(way in others for others in known)]
        if shared:
            return f"What it tells is {known[0][shared[0]]}."
    return ""


def _ways(size: int, rank: int, told: float) -> Iterator[tuple[str, str]]:
    """Other computations that come to the loss that is told: the kind of each, and what it is."""
    samples, mean = SHARES[size][rank], _loss(size, rank)
    ranks = [_loss(size, other) for other in range(size)]
    known = {
        "whole": (_gradient(0, _WHOLE)[0], "the mean over the whole batch, which is the same for all ranks"),
        "weighted": (mean * samples / _WHOLE, f"that mean times {samples}/{_WHOLE}, the weight of its share"),
        "summed": (
            mean * samples,
            f"that mean times {samples}: a sum over samples, not divided by their number",
        ),
        "elements": (
            mean * samples * 5,
            f"that mean times {samples * 5}: a sum over all squares, not divided",
        ),
        "features": (
            mean * 5,
            "that mean times 5: a sum over each sample's 5 outputs, which a mean divides by",
        ),
        "per batch": (
            mean * samples * 5 / _WHOLE,
            f"a sum over all squares, divided by the batch's {_WHOLE} samples",
        ),
        "divided": (mean / size, f"that mean divided by the {size} ranks that share the batch"),
        "plain": (
            sum(ranks) / size,
            f"the plain mean of the {size} ranks' losses, which is the same for all ranks",
        ),
        "total": (sum(ranks), f"the sum of the {size} ranks' losses, which is the same for all ranks"),
    }
    for kind, (value, words) in known.items():
        if _same(told, value):
            yield kind, words
    for first in range(_WHOLE):
        last = min(first + samples, _WHOLE)
        if first != _first(size, rank) and _same(told, _gradient(first, last)[0]):
            own = f"{_first(size, rank)} to {_first(size, rank) + samples - 1}"
            yield "elsewhere", f"the mean over the samples {first} to {last - 1}; its share is {own}"
    for pair in _torn_pairs(size, rank):
        if _same(told, _torn(*pair, samples)[0]):
            yield "torn", f"the mean over {_said_of(pair, samples)}"
            return


def _taken(rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int]) -> dict[int, list[tuple[int, int]]]:
    """By world size, first and last sample (not included) that each rank's loss is of; only where all are known."""
    found: dict[int, list[tuple[int, int]]] = {}
    for size in sizes:
        spans = []
        for rank, samples in enumerate(SHARES[size]):
            told = rows.get((size, rank), {"loss": float("nan")})["loss"]
            begins = (_first(size, rank), *range(_WHOLE))
            ends = ((b, min(b + samples, _WHOLE)) for b in begins)
            spans.append(next((span for span in ends if _same(told, _gradient(*span)[0])), None))
        if None not in spans:
            found[size] = [span for span in spans if span is not None]
    return found


def _torn_ranks(
    rows: dict[tuple[int, int], dict[str, Any]], sizes: list[int]
) -> dict[int, dict[int, tuple[int, int]]]:
    """By world size and rank, where inputs and targets begin whose loss a rank tells, where these are two places."""
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for size in sizes:
        for rank, samples in enumerate(SHARES[size]):
            told = rows.get((size, rank), {"loss": float("nan")})["loss"]
            pairs = () if _same(told, _loss(size, rank)) else _torn_pairs(size, rank)
            pair = next((p for p in pairs if _same(told, _torn(*p, samples)[0])), None)
            if pair is not None:
                found.setdefault(size, {})[rank] = pair
    return found


def _of_torn(got: torch.Tensor, torn: dict[int, tuple[int, int]], size: int) -> str:
    """Whether a gradient is the right sum over ranks of which some pair inputs with others' targets; "" if not."""
    parts = []
    for rank, samples in enumerate(SHARES[size]):
        first = _first(size, rank)
        own = _torn(*torn[rank], samples)[1] if rank in torn else _flat(first, first + samples)
        parts.append(samples / _WHOLE * own)
    if not torn or not _close(got, torch.stack(parts).sum(dim=0)):
        return ""
    rank, pair = next(iter(torn.items()))
    return f": rank {rank} takes {_said_of(pair, SHARES[size][rank])}."


def _gradients(
    tensors: dict[str, torch.Tensor],
    sizes: list[int],
    taken: dict[int, list[tuple[int, int]]],
    torn: dict[int, dict[int, tuple[int, int]]],
    started: int,
) -> tuple[float, str]:
    _, whole = _gradient(0, _WHOLE)
    scale = max(float(g.abs().max()) for g in whole.values())
    num_right, wrong, largest = 0, "", 0.0
    off_sizes = []
    for size in sizes:
        error, said, comparable = 0.0, "", True
        for name, want in whole.items():
            got = tensors.get(f"{size}/{name}")
            if got is None:
                error, said, comparable = float("inf"), f"gradients.pt has no `{size}/{name}`.", False
                break
            if got.shape != want.shape:
                error, comparable = float("inf"), False
                said = f"`{size}/{name}` has shape {tuple(got.shape)}, not {tuple(want.shape)}."
                break
            if got.dtype != want.dtype:
                kept = str(got.dtype).removeprefix("torch.")
                error, comparable = float("inf"), False
                said = f"`{size}/{name}` is {kept}; weights and batch are float64, and so is their gradient."
                break
            off = float((got.double() - want).abs().max()) / scale
            # NaN compares as nothing at all, and must not pass for that.
            error = max(error, off) if off == off else float("inf")
            said = f"At world size {size} the gradient is off by {error:.1e} of its largest element"
        if error <= _TOLERANCE:
            num_right, largest = num_right + 1, max(largest, error)
            continue
        wrong = wrong or said
        if comparable:
            off_sizes.append(size)
    if not wrong:
        return (
            1.0,
            f"At {_named(sizes)} the gradient is that of the whole batch, to {max(largest, 1e-16):.0e}.",
        )
    if wrong.startswith("At"):
        left = {size: torch.cat([tensors[f"{size}/{n}"].flatten() for n in whole]) for size in off_sizes}
        one = off_sizes[0]
        wrong += (
            _guess(left, taken, started)
            or _of_torn(left[one], torn.get(one, {}), one)
            or _of_some(tensors, one)
            or _misplaced(tensors, one)
            or "; 1e-06 is allowed."
        )
    return num_right / len(sizes), wrong


def _close(got: torch.Tensor, guess: torch.Tensor) -> bool:
    return torch.allclose(got, guess, rtol=1e-5, atol=1e-9)


def _guess(left: dict[int, torch.Tensor], taken: dict[int, list[tuple[int, int]]], started: int) -> str:
    """What the wrong gradients look like, the first of them above all, as the end of a sentence; "" unknown."""
    size, got = next(iter(left.items()))
    if not bool(got.isfinite().all()):
        return ", which holds infinities or NaN."
    shares = [(_first(size, r), _first(size, r) + m) for r, m in enumerate(SHARES[size])]
    if size in taken and taken[size] != shares:
        parts = [(last - first) / _WHOLE * _flat(first, last) for first, last in taken[size]]
        if _close(got, torch.stack(parts).sum(dim=0)):
            rank = next(r for r in range(size) if taken[size][r] != shares[r])
            (first, last), want = taken[size][rank], f"{shares[rank][0]} to {shares[rank][1] - 1}"
            return f": it is of other samples. Rank {rank} took {first} to {last - 1}; its share is {want}."
    for descending, weighed, idle, cleared, kept in product((False, True), repeat=5):
        held = _left_over(started, descending, weighed, idle, cleared, kept)
        if all(_close(gradient, held[one]) for one, gradient in left.items()):
            if cleared:
                return ": ranks without samples add the gradient that they still hold from an earlier world size."
            return ": the ranks still hold gradients of an earlier world size, and those of this one came on top."
    own = torch.stack([_flat(*share) for share in shares], dim=1)
    found = torch.linalg.lstsq(own, got.unsqueeze(1)).solution.flatten()
    if _close(got, own @ found):
        return _as_weights(found.tolist(), size, started)
    return ""


def _of_some(tensors: dict[str, torch.Tensor], size: int) -> str:
    """Which parameters' gradients are a number times what they should be, where others are right; "" unknown."""
    factors = {}
    for name, want in _gradient(0, _WHOLE)[1].items():
        got = tensors[f"{size}/{name}"]
        factor = float((got * want).sum() / (want * want).sum())
        if not _close(got, factor * want):
            return ""
        factors[name] = factor
    off = {name: factor for name, factor in factors.items() if abs(factor - 1) > 1e-5}
    told = {f"{factor:.4g}" for factor in off.values()}
    if len(off) == len(factors) or len(told) != 1:
        return ""
    names = " and ".join(f"`{name}`" for name in off)
    are = "is" if len(off) == 1 else "are each"
    return f": {names} {are} {told.pop()} times the right one, and the others are right."


def _misplaced(tensors: dict[str, torch.Tensor], size: int) -> str:
    """In which order the right numbers stand, where they do not stand under their own names; "" unknown."""
    whole = _gradient(0, _WHOLE)[1]
    got = torch.cat([tensors[f"{size}/{name}"].flatten() for name in whole])
    if not _close(got.sort().values, _flat(0, _WHOLE).sort().values):
        return ""
    said = ": its numbers are the right ones in the wrong places"
    for names in permutations(whole):
        if _close(got, torch.cat([whole[name].flatten() for name in names])):
            return f"{said}, one behind the other in the order {', '.join(f'`{name}`' for name in names)}."
    turned = [name for name, want in whole.items() if _is_turned(tensors[f"{size}/{name}"], want)]
    return f"{said}{f', with rows for columns in `{turned[0]}`' if turned else ''}."


def _is_turned(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether a matrix holds, one behind the other, what the transposed one has."""
    return not _close(got, want) and _close(got.flatten(), want.t().flatten())


def _as_weights(found: list[float], size: int, started: int) -> str:
    """What a sum of the ranks' gradients with these weights is."""
    right = [samples / _WHOLE for samples in SHARES[size]]
    times = found[0] / right[0]
    if max(map(abs, found)) < 1e-12:
        return ": all its numbers are 0."
    known = [
        ([1 / size] * size, "the plain mean of the ranks' gradients, in which a sample of a small share weighs more."),
        ([1.0] * size, "the sum of the ranks' gradients, without weights."),
        ([1 / started] * size, f"the sum of the ranks' gradients divided by all {started} ranks, without weights."),
        ([w * w for w in right], "the ranks' gradients with the weight m/n counted twice."),
        *(([w * (r == one) for r in range(size)], f"rank {one}'s own part alone; the others' are not in it.")
          for one, w in enumerate(right)),
        *(([float(r == one) for r in range(size)], f"the gradient of rank {one}'s share alone, without its weight.")
          for one in range(size)),
        ([w / started for w in right], f"the right sum divided by the {started} ranks that were started."),
        ([w / size for w in right], f"the right sum divided by the {size} ranks that share the batch."),
        ([w * times for w in right], f"{times:.6g} times the right one."),
    ]  # fmt: skip
    for weights, words in known:
        same = all(abs(a - b) <= 1e-5 * max(1.0, abs(b)) for a, b in zip(found, weights, strict=True))
        if same and (size > 1 or "right" in words):
            return f": it is {words}"
    told, want = ", ".join(f"{w:.4g}" for w in found), ", ".join(f"{m}/{_WHOLE}" for m in SHARES[size])
    return f": it is the ranks' gradients with the weights {told}; right are {want}."


def _left_over(
    started: int, descending: bool, weighed: bool, idle: bool, cleared: bool, kept: bool
) -> dict[int, torch.Tensor]:
    """Gradients by world size if those of one stay in place for the next.

    Args:
        started: ranks. descending: the largest world size comes first. weighed: the loss goes backward with its weight;
            else the gradient gets it when it is sent. idle: who has no samples sends what it holds. cleared: who has
            some clears first. kept: the sum is written over the ranks' own.
    """
    none = torch.zeros_like(_flat(0, _WHOLE))
    held, sums = [none] * started, {}
    for size in sorted((s for s in SHARES if s <= started), reverse=descending):
        sent = []
        for rank in range(started):
            if rank < size:
                first, weight = _first(size, rank), SHARES[size][rank] / _WHOLE
                new = _flat(first, first + SHARES[size][rank]) * (weight if weighed else 1)
                held[rank] = new if cleared else held[rank] + new
                sent.append(held[rank] if weighed else held[rank] * weight)
            elif idle:
                sent.append(held[rank])
        sums[size] = torch.stack(sent).sum(dim=0)
        held = [sums[size] if kept and (rank < size or idle) else held[rank] for rank in range(started)]
    return sums


def _named(sizes: list[int]) -> str:
    words = ", ".join(str(size) for size in sizes[:-1])
    return f"world sizes {words} and {sizes[-1]}" if words else f"world size {sizes[0]}"
