"""What `ring-all-reduce` is held against: training in one process on whole batches, and the least that a ring sends.

Runs only in the scorer. It trains by itself, from the numbers that the skeleton makes up by formula, and never looks at
a submission: only at the weights that one left, and at what the probe told of messages and collectives. Where the
weights are wrong it trains as other ways would have, and says which of them the weights are.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache, reduce
from itertools import product
from typing import Any, TypeAlias

import torch
from torch import nn

from grader.model.run_account import Exchange, RunAccount
from grader.model.task_figure import Panel, Series, TaskFigure

_STEPS, _SAMPLES, _LEARNING_RATE = 4, 48, 0.5
_NUMBER_BYTES = 8
_GRADIENT_BYTES = 19_210 * _NUMBER_BYTES
_TOLERANCE = 1e-7
"""Of the largest weight; the order of additions makes less than 1e-12."""
_SLACK = 0.02
"""Chunks can't always be equally long: what a rank may send above the least."""
_SMALL = _GRADIENT_BYTES // 100
"""Bytes of all collectives of a rank that are no gradient: a loss, a flag."""

Combine = Callable[[list[torch.Tensor]], torch.Tensor]
Answers = dict[str, tuple[float | None, str, str]]


def _model() -> nn.Sequential:
    """The skeleton's network, with its weights."""
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (number + 2))
            parameter.copy_(waves.reshape(parameter.shape) / 8)
    return model


@cache
def _batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The skeleton's batch of a step: inputs (48, 64) and targets (48, 10), float64."""
    numbers = torch.arange(_SAMPLES * 64, dtype=torch.float64) + step * _SAMPLES * 64
    inputs = torch.sin(numbers**2).reshape(_SAMPLES, 64)
    return inputs, torch.cos(inputs[:, :10].cumsum(dim=1) * 3)


_WAYS: dict[str, tuple[Combine, str]] = {
    "mean": (lambda parts: sum(parts[1:], parts[0]) / len(parts), ""),
    "sum": (
        lambda parts: sum(parts[1:], parts[0]),
        "steps with the sum of the ranks' gradients: nobody divided it",
    ),
    "own": (
        lambda parts: parts[0],
        "steps with rank 0's own gradient alone: nothing of the others came into it",
    ),
    "twice": (
        lambda parts: sum(parts[1:], parts[0]) / len(parts) ** 2,
        "steps with the mean of the ranks' gradients divided once more by their number",
    ),
    "running": (
        lambda parts: reduce(lambda mean, part: (mean + part) / 2, parts),
        "steps with a running mean of the ranks' gradients: the last one weighs 1/2, the one before it 1/4, and so on",
    ),
    "last two": (
        lambda parts: (parts[0] + parts[-1]) / len(parts),
        "steps in which rank 0 added what the rank before it sent once, and nothing of the others",
    ),
}
"""Ways to make one gradient of the ranks', by name, and what is said of them."""

_LAPS = {
    "own parts": "each chunk is one rank's own gradient in the end. Either each rank begins the second lap with the "
    "chunk that it sent first in the lap before, of which it holds its own part alone, and not with the one that it "
    "has finished; or what comes in the first lap takes the place of a rank's own part and is not added to it",
    "second adds": "the second lap adds what comes, where the finished chunks were to take the place of what is there",
    "halved": "each round of the first lap takes the mean of what comes and of what is there, so each chunk is a "
    "running mean, in which the rank that came last weighs 1/2, the one before it 1/4, and so on",
    "divided": "each round of the first lap divides by the number of ranks, so the ranks' parts weigh the less the "
    "earlier they came in",
    "first short": "the first lap is one round too short, so each chunk lacks the part of one rank",
    "second short": "the second lap is one round too short, so each rank keeps one chunk without the others' parts",
    "no second": "without a second lap each rank knows the mean of one chunk alone",
}
"""Faults of a ring by name, and what is said of them."""


_SHORT = ("first short", "second short", "no second")
"""Those after which ranks have sent less than a ring has to."""

How: TypeAlias = tuple[bool, int, int, bool]
"""One of the ways to go around a ring: even (chunks are as long as those of `torch.chunk`; else as those of
`tensor_split`), direction (in which numbers of ranks the messages go up), first (chunk that rank 0 sends first),
finished (only the finished chunk is divided before the second lap; else all of them are)."""

_HOWS: tuple[How, ...] = tuple(product((False, True), (1, -1), (0, 1, -1), (False, True)))
_ROUNDS = ("halved", "divided")
"""Those that divide in each round, and nothing between the laps."""


@cache
def _shapes() -> dict[str, torch.Size]:
    return {name: p.shape for name, p in _model().named_parameters()}


def _parts(flat: torch.Tensor) -> list[torch.Tensor]:
    """Networks' weights by parameter, cut out of vectors along the last dimension."""
    pieces = flat.split([shape.numel() for shape in _shapes().values()], dim=-1)
    return [piece.unflatten(-1, shape) for piece, shape in zip(pieces, _shapes().values(), strict=True)]


def _gradients(flat: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Gradients of the mean loss for networks side by side, each a row, as are their weights."""
    w, b, v, c = parts = [part.detach().requires_grad_() for part in _parts(flat)]
    hidden = torch.tanh(inputs @ w.transpose(1, 2) + b.unsqueeze(1))
    losses = (hidden @ v.transpose(1, 2) + c.unsqueeze(1) - targets).square().mean(dim=(1, 2))
    return torch.cat([g.flatten(1) for g in torch.autograd.grad(losses.sum(), parts)], dim=1)


def _flat() -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in _model().parameters()])


def _named(flat: torch.Tensor) -> dict[str, torch.Tensor]:
    return dict(zip(_shapes(), _parts(flat), strict=True))


@cache
def _trained(world_size: int, way: str) -> dict[str, torch.Tensor]:
    """Weights after the skeleton's steps, with ranks' gradients put together that way on every rank."""
    weights = _flat()
    for step in range(_STEPS):
        inputs, targets = _batch(step)
        shares = [slice(rank, None, world_size) for rank in range(world_size)]
        parts = [_gradients(weights.unsqueeze(0), inputs[share], targets[share])[0] for share in shares]
        weights = weights - _LEARNING_RATE * _WAYS[way][0](parts)
    return _named(weights)


def examine(left: dict[str, Any], run: RunAccount) -> Answers:
    """Answer `average` from the weights, `by-hand` and `traffic` from what the ranks exchanged."""
    if "weights.pt" not in left:
        return {}
    world_size = max(1, int(run["world_size"]))
    sent, least = _sent(run), _least(world_size) * _GRADIENT_BYTES * _STEPS
    short = bool(sent) and max(sent.values()) < least * (1 - _SLACK)
    share, said = _weights(left["weights.pt"], world_size, short)
    rounded = {_rounded_to(run, rank, number / least) for rank, number in sent.items()} - {None} if least else set()
    if share < 1.0 and rounded:
        said += (
            f" Gradients went from rank to rank{_at(run, max(sent, key=lambda rank: sent[rank]))} with {min(rounded)} "
            f"bytes for each number, where they have {_NUMBER_BYTES}: what the ranks add up was rounded on the way."
        )
    answers: Answers = {"average": (share, said, "weights.pt")}
    if world_size > 1:
        answers["by-hand"] = (*_by_hand(run), "")
        traffic, told = _traffic(run, world_size)
        # Rounds that are not there send nothing: one fault, told once.
        same = short and traffic == 0.0 and (rounded or any(_LAPS[fault] in said for fault in _SHORT)) and share < 1.0
        answers["traffic"] = (traffic, said if same else told, "")
    return answers


def figures(seen: Any) -> list[TaskFigure]:
    """What each rank sent, beside the least; nothing where no rank sent anything."""
    sent, world_size = _sent(seen.run), int(seen.run.get("world_size", 1))
    if not sent:
        return []
    ranks = tuple(float(rank) for rank in range(world_size))
    gradients = tuple(sent[int(rank)] / _GRADIENT_BYTES / _STEPS for rank in ranks)
    least = _least(world_size)
    curves = (
        Series("sent by a rank", ranks, gradients, dots=True),
        Series(f"the least, 2 · {world_size - 1} / {world_size}", (-0.4, world_size - 0.6), (least, least)),
    )
    told = f"At most {max(gradients):.2f} gradients in a step; a ring of {world_size} needs {least:.2f}."
    panel = Panel("", "rank", "gradients per step", curves, from_zero=True)
    return [TaskFigure("traffic", "What each rank sent", told, (panel,))]


def _least(world_size: int) -> float:
    """Gradients that a rank sends in one step: once around the ring to add, once more to tell."""
    return 2 * (world_size - 1) / world_size


def _weights(tensors: dict[str, torch.Tensor], world_size: int, short: bool) -> tuple[float, str]:
    """How right weights are; `short`: ranks sent less than a ring has to."""
    want = _trained(world_size, "mean")
    for name, weight in want.items():
        got = tensors.get(name)
        if got is None:
            return 0.0, f"weights.pt has no `{name}`."
        if got.shape != weight.shape or got.dtype != weight.dtype:
            kind = f"{tuple(got.shape)} in {str(got.dtype).removeprefix('torch.')}"
            return 0.0, f"`{name}` is {kind}; the network's is {tuple(weight.shape)} in float64."
    off = _off(tensors, want)
    if off <= _TOLERANCE:
        return (
            1.0,
            f"After {_STEPS} steps the weights are those of one process and whole batches, to {max(off, 1e-16):.0e}.",
        )
    said = f"After {_STEPS} steps the weights are off by {off:.1e} of the largest one"
    for way, (_, words) in _WAYS.items():
        if words and _off(tensors, _trained(world_size, way)) <= _TOLERANCE:
            return 0.0, f"{said}: they come of {words}."
    # A first lap that is too short may leave what other faults leave, but for what was sent.
    for fault in sorted(_LAPS, key=lambda fault: short and fault not in _SHORT):
        if any(_off(tensors, around) <= _TOLERANCE for around in _around(world_size, fault)):
            return 0.0, f"{said}: {_LAPS[fault]}."
    return 0.0, f"{said}; {_TOLERANCE:.0e} is allowed."


@cache
def _around(world_size: int, fault: str, *chosen: How) -> list[dict[str, torch.Tensor]]:
    """Rank 0's weights after the skeleton's steps, with a ring that has one fault, for each way to go around it."""
    hows = chosen or tuple(
        (even, direction, first, finished)
        for even, direction, first, finished in _HOWS
        if not ((even and _flat().numel() % world_size == 0) or (finished and fault in _ROUNDS))
    )
    # All ranks begin alike, whichever way they go; later the networks of one rank are computed side by side.
    weights = [_flat().unsqueeze(0) for _ in range(world_size)]
    for step in range(_STEPS):
        inputs, targets = _batch(step)
        shares = [slice(rank, None, world_size) for rank in range(world_size)]
        own = [_gradients(weights[rank], inputs[share], targets[share]) for rank, share in enumerate(shares)]
        averaged = [
            _passed_around([g[number % len(g)] for g in own], fault, how) for number, how in enumerate(hows)
        ]
        for rank in range(world_size):
            weights[rank] = weights[rank] - _LEARNING_RATE * torch.stack([ranks[rank] for ranks in averaged])
    return [_named(flat) for flat in weights[0]]


def _passed_around(own: list[torch.Tensor], fault: str, how: How) -> list[torch.Tensor]:
    """What each rank has of all ranks' gradients after a ring that has one fault."""
    (even, direction, first, finished), world_size = how, len(own)
    last = world_size - 1
    held = [[*(flat.chunk(world_size) if even else flat.tensor_split(world_size))] for flat in own]

    def lap(begin: int, number: int, adds: bool, parts: int = 1) -> None:
        for turn in range(number):
            # What every rank sends in a round is what it held before that round.
            sent = []
            for rank in range(world_size):
                chunk = (direction * rank + begin - turn) % world_size
                sent.append((chunk, held[rank][chunk]))
            for rank in range(world_size):
                chunk, came = sent[(rank - direction) % world_size]
                held[rank][chunk] = (held[rank][chunk] + came) / parts if adds else came

    each_round = {"halved": 2, "divided": world_size}.get(fault, 1)
    lap(first, last - (fault == "first short"), fault != "first replaces", each_round)
    for rank in range(world_size) if fault not in _ROUNDS else ():
        done = (direction * rank + first + 1) % world_size
        held[rank] = [c / world_size if i == done or not finished else c for i, c in enumerate(held[rank])]
    if fault != "no second":
        begin = first if fault == "own parts" else first + 1
        lap(begin, last - (fault == "second short"), fault == "second adds")
    return [torch.cat(chunks) for chunks in held]


def _off(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> float:
    largest = max(float(weight.abs().max()) for weight in want.values())
    off = max(float((got[name] - weight).abs().max()) for name, weight in want.items()) / largest
    # NaN compares as nothing at all, and must not pass for that.
    return off if off == off else float("inf")


def _by_hand(run: RunAccount) -> tuple[float | None, str]:
    if wrappers := sorted({name for rank in run.ranks for name in rank.wrappers}):
        return (
            0.0,
            f"The model was wrapped ({', '.join(wrappers)}), and the wrapper averages by collectives of its own.",
        )
    if large := _large(run):
        return (
            0.0,
            f"`{large.name}` at {large.where} carries {_amount(large)}: that is the library's work, not a message.",
        )
    if run.gaps:
        return None, f"Whether gradients travelled in messages alone can't be told: {run.gaps[0]}"
    if not any(one.sends for one in run.messages):
        return 0.0, "No rank sent a message to another."
    return (
        1.0,
        f"Messages went from rank to rank, {sum(one.calls for one in run.messages if one.sends):,} of them.",
    )


def _large(run: RunAccount) -> Exchange | None:
    """What is no message and carries gradients, or may: the first of a rank whose collectives are large together."""
    others = [one for one in run.exchanges if not (one.sends or one.receives) and one.bytes != 0]
    for rank in range(run.world_size):
        own = [one for one in others if one.rank == rank and one.name.partition(".")[0] != "store"]
        hidden = [one for one in own if one.bytes is None]
        if hidden or sum(one.bytes or 0 for one in own) > _SMALL:
            return (hidden or sorted(own, key=lambda one: -(one.bytes or 0)))[0]
    return None


def _amount(one: Exchange) -> str:
    return f"{one.bytes:,} bytes" if one.bytes is not None else "objects of any size"


def _sent(run: RunAccount) -> Counter[int]:
    """Bytes that each rank sent in messages."""
    sent: Counter[int] = Counter()
    for one in run.messages:
        if one.sends:
            sent[one.rank] += one.bytes or 0
    return sent


def _traffic(run: RunAccount, world_size: int) -> tuple[float | None, str]:
    sent, least = _sent(run), _least(world_size) * _GRADIENT_BYTES * _STEPS
    if not sent:
        # One fault, told once.
        return _by_hand(run)
    if run.gaps:
        return None, f"What the ranks sent can't be counted: {run.gaps[0]}"
    if _large(run) is not None and max(sent.values()) < least * (1 - _SLACK):
        # What a collective carried needed no message: one fault, told once, and what went in messages counts.
        return max(sent.values()) / least, _by_hand(run)[1]
    rank, most = max(sent.items(), key=lambda pair: (pair[1], -pair[0]))
    told = (
        f"Rank {rank} sent {most:,} bytes in {_STEPS} steps, {most / _GRADIENT_BYTES / _STEPS:.2f} gradients in each"
        f"{_at(run, rank)}"
    )
    ring = f"a ring of {world_size} sends 2 · {world_size - 1} / {world_size} = {_least(world_size):.2f}"
    if most > least * (1 + _SLACK):
        return 0.0, f"{told}; {ring}.{_guess(sent, world_size)}"
    if (size := _rounded_to(run, rank, most / least)) is not None:
        return 0.0, (
            f"{told}; {ring}. It sent as many messages as that takes, but of {size} bytes for each number, where the "
            f"gradient's have {_NUMBER_BYTES}: what the ranks add up was rounded on the way."
        )
    if most < least * (1 - _SLACK):
        return 0.0, f"{told}; {ring}, and with less the ranks can't all know the mean."
    return 1.0, f"{told}, and no rank more: {ring}."


def _at(run: RunAccount, rank: int) -> str:
    """Where a rank sent most of its bytes, after a space; "" unknown."""
    own: Counter[str] = Counter()
    for one in run.messages:
        if one.rank == rank and one.sends and one.path:
            own[one.where] += one.bytes or 0
    where = max(own, key=lambda where: own[where], default="")
    return f" ({where})" if where else ""


def _rounded_to(run: RunAccount, rank: int, share: float) -> int | None:
    """Bytes of each number, where a rank sent all messages of two laps and a half, or a quarter, of their bytes."""
    laps = 2 * (int(run["world_size"]) - 1) * _STEPS
    calls = sum(one.calls for one in run.messages if one.rank == rank and one.sends)
    sizes = (n for n in (4, 2, 1) if abs(share * _NUMBER_BYTES / n - 1) < _SLACK)
    return next(sizes, None) if laps and calls and calls % laps == 0 else None


def _guess(sent: Counter[int], world_size: int) -> str:
    """What such traffic looks like, as a sentence after a space; "" unknown."""
    gradients = [sent[rank] / _GRADIENT_BYTES / _STEPS for rank in range(world_size)]
    if all(abs(g - (world_size - 1)) < 0.05 for g in gradients):
        return " Every rank's whole gradient went to all others: cut it into chunks, of which each rank adds up one."
    if max(gradients) > 1.5 * sorted(gradients)[-2]:
        return (
            " One rank gathers and tells the others, and does most of the sending: spread that over the ring."
        )
    if all(abs(g - 2 * (world_size - 1)) < 0.05 for g in gradients):
        return " The whole gradient goes around twice: send one chunk in each message."
    return ""
