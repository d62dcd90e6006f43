"""Sums that stand for tensors: equal tensors give equal bits, different ones practically never.

Reads values only; adds no collective and keeps no graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

NUM_CHOSEN = 4
SMALL = 1 << 16
"""Elements up to which a tensor is summed in a few microseconds."""

MAX_HASHED = 256
_ELEMENTS_PER_SAMPLE = 1024
_FEWEST_NEIGHBOURS, _MOST_NEIGHBOURS = 16, 64
"""Whole numbers that are looked at together: half a row, within these bounds. Texts repeat shorter phrases."""
_FEWEST_CHANGES = 4
"""Of neighbours within a run: padding and ruled lines are alike everywhere."""
_SHORTEST = 2 * _FEWEST_NEIGHBOURS
_ANCHORED_ROWS, _ANCHORED_ELEMENTS = 16, 256
_FACTOR, _MIX = 6364136223846793005, -7046029254386353131
"""Odd numbers with well mixed bits: Knuth's for linear congruential generators, and 2^64 over the golden ratio."""
_NOWHERE = (1 << 63) - 1
_ALL_BITS = (1 << 64) - 1
_EVERY_61ST = slice(None, None, 61)


def choose(params: Sequence[Any]) -> list[int]:
    """Positions of four parameters that stand for all: the first, the last and two between, small ones preferred."""
    small = [i for i, p in enumerate(params) if 0 < p.numel() <= SMALL]
    if len(small) < NUM_CHOSEN:
        by_size = sorted(range(len(params)), key=lambda i: params[i].numel())
        small = sorted(by_size[:NUM_CHOSEN])
    last = len(small) - 1
    return sorted({small[round(last * k / (NUM_CHOSEN - 1))] for k in range(NUM_CHOSEN)}) if small else []


def is_sharded(tensor: Any) -> bool:
    """Whether the tensor is a DTensor, of which every rank holds its own part."""
    return type(tensor).__name__ == "DTensor" and hasattr(tensor, "to_local")


def local_part(tensor: Any) -> Any:
    """The tensor without its graph; of a sharded one what this rank holds."""
    import torch

    with torch.no_grad():
        return tensor.to_local() if is_sharded(tensor) else torch._C.TensorBase.detach(tensor)


def sums(tensors: Iterable[Any]) -> list[float | None]:
    """One float64 sum per tensor, of the local part where it is sharded; None in place of a missing tensor."""
    return read(_sums(tensors, doubled=False))


def fingerprint(tensors: Iterable[Any]) -> list[float | None]:
    """Like `sums`, with every 61st element counted twice.

    Softmax and normalisation layers make some sums 0, or constant, whatever the data: the gradients of a classifier's
    last layer add up to 0 over the classes. 61 is prime, so that the doubled elements seldom line up with a dimension.
    """
    return read(fingerprint_later(tensors))


def fingerprint_later(tensors: Iterable[Any]) -> list[Any]:
    """The same without waiting for a device: numbers that are there, and those that `read` waits for."""
    return _sums(tensors, doubled=True)


def read(found: Sequence[Any]) -> list[float | None]:
    """The numbers, with one synchronisation with the device instead of one for each tensor."""
    import torch

    base = torch._C.TensorBase
    waiting = [one for one in found if isinstance(one, base)]
    if not waiting:
        return list(found)
    with torch.no_grad():
        values = iter(torch.stack([one.to(waiting[0].device) for one in waiting]).tolist())
    return [next(values) if isinstance(one, base) else one for one in found]


def count_filled(tensors: Iterable[Any]) -> int:
    """How many of these are there and hold anything but zeros."""
    return sum(are_filled(tensors))


def are_filled(tensors: Iterable[Any]) -> list[bool]:
    """Whether each of these is there and holds anything but zeros."""
    import torch

    base = torch._C.TensorBase
    looked = [t is not None and (bool(t.any()) if is_sharded(t) else base.any(t)) for t in tensors]
    return [bool(one) for one in read(looked)]


def _sums(tensors: Iterable[Any], *, doubled: bool) -> list[Any]:
    import torch

    # What a script puts in the place of a method of `torch.Tensor` is not asked: these cannot be replaced.
    base, float64 = torch._C.TensorBase, torch.float64
    found: list[Any] = []
    with torch.no_grad():
        for tensor in tensors:
            if tensor is None:
                found.append(None)
                continue
            local = local_part(tensor)
            if local.is_sparse:
                local = base.values(base.coalesce(local))
            elif base.numel(local) and not base.untyped_storage(local).size():
                # What a sharded model has gathered and let go of again: to read there would end the process.
                found.append(None)
                continue
            flat = base.reshape(local, -1)
            total = base.sum(flat, dtype=float64)
            more = base.sum(base.__getitem__(flat, _EVERY_61ST), dtype=float64) if doubled else None
            if local.is_cpu:
                # Two plain numbers are added sooner than two tensors, to the same bits.
                plain = base.item(total)
                found.append(plain if more is None else plain + base.item(more))
            else:
                found.append(total if more is None else total + more)
    return found


def sample_hashes(batch: Any) -> list[str]:
    """One hash per sample of a batch, at most 256, each from at most 1,024 evenly spread elements."""
    # Of a distributed tensor this rank's own part: it has no memory of its own, and to cut it would take a collective.
    rows = getattr(batch, "_local_tensor", batch).detach()[:MAX_HASHED]
    if not rows.numel():
        return []
    rows = rows.reshape(rows.shape[0], -1) if rows.dim() > 1 else rows.reshape(-1, 1)
    stride = -(-rows.shape[1] // _ELEMENTS_PER_SAMPLE) or 1
    words = _words(rows[:, ::stride].contiguous().cpu())
    # Overflow is part of it. Without the shift, numbers that end in many zero bits would leave them in the sum.
    mixed = words * _factors(words.shape[1])
    return [f"{one & _ALL_BITS:016x}" for one in (mixed ^ (mixed >> 32)).sum(1).tolist()]


def _words(rows: Any) -> Any:
    """The bits of rows as whole numbers of at most 32."""
    import torch

    if rows.is_complex():
        rows = torch.view_as_real(rows).reshape(rows.shape[0], -1)
    return rows.view({1: torch.uint8, 2: torch.int16}.get(rows.element_size(), torch.int32))


def anchors(batch: Any) -> list[str]:
    """One place in each of the first 16 rows, as `position:hash`, which moves with what the row was cut out of.

    Of all runs of neighbours half as long it is the one with the smallest hash: rows that overlap mostly share it, at
    other positions. "" for a row where all is too much alike. Empty for other batches than rows of at least 32 whole
    numbers, such as images: samples whose bits are the same whenever they are drawn again are told by it, too.

    The smallest of all hashes stands for a window in Schleimer, Wilkerson and Aiken's winnowing (SIGMOD 2003).
    """
    import torch

    given = getattr(batch, "_local_tensor", batch).detach()
    whole = not (given.is_floating_point() or given.is_complex() or given.dtype == torch.bool)
    if not whole or given.dim() != 2 or given.shape[1] < _SHORTEST:
        return []
    rows = given[:_ANCHORED_ROWS, :_ANCHORED_ELEMENTS].to("cpu", torch.int64)
    grams = rows.unfold(1, min(rows.shape[1] // 2, _MOST_NEIGHBOURS), 1)
    changes = (grams[:, :, 1:] != grams[:, :, :-1]).sum(2)
    # Overflow is part of it.
    hashes = (grams * _factors(grams.shape[2])).sum(2)
    hashes = ((hashes ^ (hashes >> 29)) * _MIX).bitwise_and_(_NOWHERE)
    hashes[changes < _FEWEST_CHANGES] = _NOWHERE
    values, places = hashes.min(1)
    pairs = zip(places.tolist(), values.tolist(), strict=True)
    return ["" if value == _NOWHERE else f"{place}:{value:016x}" for place, value in pairs]


@cache
def _factors(num: int) -> Any:
    import torch

    powers = [pow(_FACTOR, n + 1, 1 << 64) for n in range(num)]
    return torch.tensor([p - (1 << 64) if p >> 63 else p for p in powers], device="cpu")
