"""Which sample of which data set an index means: from a loader's own data set down to the root.

Follows `Subset` (so `random_split`), `ConcatDataset`, and classes of the script's own around a data set, where what
these ask it for is plain to see; asks no data set for a sample, since that may be slow or draw random numbers.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from grader.probe.data.dataset_shares import held_below

MAX_INDICES = 65_536
"""More indices than this in one batch are not written out."""

Resolver: TypeAlias = Callable[[Iterable[int]], list[int]]

_DIGEST_ROWS = 64
_INT = {int}
_MAX_ATTRIBUTES = 64
_MAX_DEPTH = 3
_LIBRARIES = ("torch", "torchvision")


@dataclass(frozen=True, slots=True)
class Root:
    """The data set at the bottom of a loader's.

    Attributes:
        dataset: the root itself; kept alive by its loader anyway.
        resolve: from indices of the loader's data set to indices of the root.
        resolvable: False where the way down is hidden or has no indices at all.
        hides: True where the root is somebody's own class around a `Subset`, and nothing tells what it asks for there:
            its indices say little on another rank.
    """

    dataset: Any
    resolve: Resolver
    resolvable: bool
    hides: bool


def find_root(dataset: Any, *, own: bool = True) -> Root:
    """The root of a map-style data set. Several roots (`ConcatDataset` of different ones) are the data set itself.

    `own`: also through classes of the script's own, which other processes may hold in another state.
    """
    from torch.utils.data import ConcatDataset, Subset

    if isinstance(dataset, Subset):
        below = find_root(dataset.dataset, own=own)
        return Root(below.dataset, _through_subset(dataset, below.resolve), below.resolvable, below.hides)
    if isinstance(dataset, ConcatDataset) and dataset.datasets:
        parts = [find_root(part, own=own) for part in dataset.datasets]
        hides = any(part.hides for part in parts)
        if all(part.dataset is parts[0].dataset for part in parts):
            resolve = _through_concat(dataset, [part.resolve for part in parts])
            return Root(parts[0].dataset, resolve, all(part.resolvable for part in parts), hides)
        if all(part.dataset is whole for part, whole in zip(parts, dataset.datasets, strict=True)):
            return Root(dataset, list, True, hides)
        return Root(dataset, _through_parts(dataset, parts), all(part.resolvable for part in parts), hides)
    held = held_below(dataset) if own else None
    if held is not None:
        below, step = find_root(held[0]), held[1]
        return Root(
            below.dataset, lambda indices: below.resolve(step(indices)), below.resolvable, below.hides
        )
    return Root(dataset, list, hasattr(dataset, "__getitem__"), _holds_subset(dataset))


def _through_subset(subset: Any, below: Resolver) -> Resolver:
    source: Any = None
    table: Sequence[int] = ()

    def resolve(indices: Iterable[int]) -> list[int]:
        nonlocal source, table
        if subset.indices is not source:  # the first time, or somebody has drawn a new subset
            source = subset.indices
            tolist = getattr(source, "tolist", None)
            table = tolist() if callable(tolist) else source
        return below([int(table[index]) for index in indices])

    return resolve


def _through_concat(concat: Any, below: Sequence[Resolver]) -> Resolver:
    def resolve(indices: Iterable[int]) -> list[int]:
        found: list[int] = []
        for index in indices:
            part, offset = _locate(concat, index)
            found += below[part]([offset])
        return found

    return resolve


def _through_parts(concat: Any, parts: Sequence[Root]) -> Resolver:
    # Subsets of several roots: number the roots' samples one after the other, as if the roots were concatenated.
    bases: dict[int, int] = {}
    total = 0
    for part in parts:
        if id(part.dataset) not in bases:
            bases[id(part.dataset)] = total
            total += len(part.dataset)

    def resolve(indices: Iterable[int]) -> list[int]:
        found = []
        for index in indices:
            part, offset = _locate(concat, index)
            found.append(bases[id(parts[part].dataset)] + parts[part].resolve([offset])[0])
        return found

    return resolve


def _locate(concat: Any, index: int) -> tuple[int, int]:
    sizes = concat.cumulative_sizes
    if index < 0:
        index += sizes[-1]
    part = bisect_right(sizes, index)
    return part, index - (sizes[part - 1] if part else 0)


def _attributes(dataset: Any) -> list[tuple[str, Any]]:
    try:
        return sorted(vars(dataset).items())[:_MAX_ATTRIBUTES]
    except TypeError:
        return []


def _holds_subset(dataset: Any) -> bool:
    from torch.utils.data import Subset

    return any(isinstance(one, Subset) for one in _held(dataset))


def split_of(dataset: Any, depth: int = 0) -> str | None:
    """`train` or `validation` where the root says so itself, as torchvision's data sets do.

    What stands around other data sets is of their split where that is one.
    """
    train = getattr(dataset, "train", None)
    if isinstance(train, bool):
        return "train" if train else "validation"
    split = getattr(dataset, "split", None)
    if isinstance(split, str):
        return "train" if split.startswith("train") else "validation"
    held = _held(dataset) if depth < _MAX_DEPTH else ()
    splits = {split_of(one, depth + 1) for one in held}
    return splits.pop() if len(splits) == 1 else None


def _held(dataset: Any) -> list[Any]:
    """Data sets that this one holds in its attributes."""
    from torch.utils.data import Dataset

    values = [value for _, value in _attributes(dataset)]
    listed = [one for value in values if isinstance(value, (list, tuple)) for one in value[:8]]
    return [one for one in (*values, *listed) if isinstance(one, Dataset)]


def state(dataset: Any) -> str | None:
    """Digest of all that decides which samples the indices of a script's own data set mean, whole numbers included.

    It changes where samples are dealt anew, and where an epoch is counted. None for a library's data set.
    """
    own = type(dataset).__module__.partition(".")[0] not in _LIBRARIES
    return digest(dataset, numbers=True) if own else None


def digest(dataset: Any, depth: int = 0, *, numbers: bool = False) -> str | None:
    """Short digest of the arrays, lists and texts that a data set holds, from at most 64 rows of each.

    Ranks that built the same data set have equal digests. None where nothing is held that could be compared.
    `numbers`: of the plain whole numbers, too, which may be told apart for other reasons, such as a rank that is kept.
    """
    sha = hashlib.blake2b(digest_size=8)
    any_value = False
    for name, value in _attributes(dataset):
        part = (
            repr(value).encode()
            if numbers and isinstance(value, int)
            else _digest_value(value, depth, numbers)
        )
        if part is not None:
            any_value = True
            sha.update(f"{name}\0".encode() + part)
    return sha.hexdigest() if any_value else None


def _digest_value(value: Any, depth: int, numbers: bool) -> bytes | None:
    from torch import Tensor
    from torch.utils.data import Dataset

    if isinstance(value, Tensor) or type(value).__module__ == "numpy":
        shape = tuple(getattr(value, "shape", ()))
        if not shape or not shape[0]:
            return repr(shape).encode()
        rows = value[:: max(1, shape[0] // _DIGEST_ROWS)].reshape(-1)[:: _stride(shape)]
        return repr((shape, str(value.dtype), rows.tolist())).encode("utf-8", "replace")
    if isinstance(value, (list, tuple, range)):
        if any(isinstance(one, (Dataset, Tensor)) for one in value[:8]):
            parts = [_digest_value(one, depth, numbers) for one in value[:8]]
            return b"".join(part or b"-" for part in parts) + str(len(value)).encode()
        rows = [
            one
            for one in value[:: max(1, len(value) // _DIGEST_ROWS)]
            if isinstance(one, (int, float, str, tuple))
        ]
        return repr((len(value), rows)).encode("utf-8", "replace") if rows or not value else None
    if isinstance(value, Dataset) and depth < _MAX_DEPTH:
        below = digest(value, depth + 1, numbers=numbers)
        return below.encode() if below is not None else None
    return None


def _stride(shape: tuple[int, ...]) -> int:
    row = 1
    for size in shape[1:]:
        row *= int(size)
    return max(1, row // 16)


def index_list(drawn: Any) -> list[int] | None:
    """What a batch sampler drew as a list of integers; None where it is something else or too much."""
    if type(drawn) is list and len(drawn) <= MAX_INDICES and set(map(type, drawn)) == _INT:
        return drawn  # as nearly all samplers draw
    tolist = getattr(drawn, "tolist", None)
    if callable(tolist):
        drawn = tolist()
    if isinstance(drawn, int):
        return [drawn]
    if not isinstance(drawn, (list, tuple)) or len(drawn) > MAX_INDICES:
        return None
    if set(map(type, drawn)) == _INT:
        return drawn if isinstance(drawn, list) else list(drawn)
    numbers = []
    for one in drawn:
        try:
            numbers.append(one.__index__())
        except (AttributeError, TypeError):
            return None
    return numbers


def num_samples(data: Any, depth: int = 0) -> int:
    """Length of the first tensor found in a batch; 0 where there is none."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    if depth < 3 and isinstance(data, dict):
        data = tuple(data.values())
    if depth < 3 and isinstance(data, (list, tuple)):
        for one in data:
            found = num_samples(one, depth + 1)
            if found:
                return found
    return 0
