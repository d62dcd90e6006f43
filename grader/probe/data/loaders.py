"""DataLoaders as they are built: over which data set, with which sampler, and how indices lead to the root.

What they deliver is the business of `passes`.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.data.datasets import Root, digest, find_root, split_of
from grader.probe.hooks import code_locations
from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.patches import guarded
from grader.probe.trace import events
from grader.probe.trace.writer import writer


class TrackedLoader:
    """What is known about one DataLoader.

    Attributes:
        id: of its LOADER event; root: the data set at the bottom; passes: begun so far.
        validates: whether the root says that it is for validation.
    """

    __slots__ = ("id", "passes", "root", "validates")

    def __init__(self, number: int, root: Root) -> None:
        self.id = number
        self.root = root
        self.passes = 0
        self.validates = False


_loaders: dict[int, TrackedLoader] = {}
_roots: dict[int, tuple[Any, int]] = {}
_num_roots = 0
_num_loaders = 0


def _root_id(dataset: Any) -> int:
    global _num_roots
    known = _roots.get(id(dataset))
    if known is None:
        try:
            weakref.finalize(dataset, _roots.pop, id(dataset), None).atexit = False
            holder = None
        except TypeError:
            holder = dataset  # a list, say: held, so that its id can't pass to another object
        known = _roots[id(dataset)] = (holder, _num_roots)
        _num_roots += 1
    return known[1]


def _size(sized: Any) -> int | None:
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


def whole(value: Any) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shuffle(sampler: Any) -> bool | None:
    from torch.utils.data import RandomSampler, SequentialSampler

    if isinstance(sampler, RandomSampler):
        return True
    if isinstance(sampler, SequentialSampler):
        return False
    shuffle = getattr(sampler, "shuffle", None)
    return shuffle if isinstance(shuffle, bool) else None


def sampler_of(loader: Any) -> Any:
    """The innermost sampler: libraries wrap batch samplers in their own."""
    outer = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
    for _ in range(8):
        inner = getattr(outer, "sampler", None) or getattr(outer, "batch_sampler", None)
        if inner is None:
            break
        outer = inner
    return outer


@guarded("loader")
def built(loader: Any, site: CodeLocation | None = None) -> TrackedLoader:
    """Write what a DataLoader is; `site` is where it was built, if that isn't here."""
    global _num_loaders
    from torch.utils.data import IterableDataset

    iterable = isinstance(loader.dataset, IterableDataset)
    # Workers that persist hold the data set as it was when they were started.
    live = not (loader.num_workers and loader.persistent_workers)
    root = Root(loader.dataset, list, False, False) if iterable else find_root(loader.dataset, own=live)
    sampler = None if iterable else sampler_of(loader)
    known = TrackedLoader(_num_loaders, root)
    _num_loaders += 1
    _loaders[id(loader)] = known
    weakref.finalize(loader, _loaders.pop, id(loader), None).atexit = False
    batches = loader.batch_sampler
    split = split_of(root.dataset)
    known.validates = split == "validation"
    writer.write(
        events.LOADER,
        id=known.id,
        site=site or code_locations.here(),
        dataset=type(root.dataset).__name__,
        root=_root_id(root.dataset),
        root_size=None if iterable else _size(root.dataset),
        digest=None if iterable else digest(root.dataset),
        size=None if iterable else _size(loader.dataset),
        split=split,
        sampler=type(sampler).__name__ if sampler is not None else "",
        num_replicas=whole(getattr(sampler, "num_replicas", getattr(batches, "num_processes", None))),
        sampler_rank=whole(getattr(sampler, "rank", getattr(batches, "process_index", None))),
        sampler_seed=whole(getattr(sampler, "seed", None)),
        shuffle=_shuffle(sampler),
        batch_size=whole(loader.batch_size or getattr(batches, "batch_size", None)),
        drop_last=bool(getattr(loader, "drop_last", False) or getattr(batches, "drop_last", False)),
        num_workers=loader.num_workers,
        iterable=iterable,
        resolvable=root.resolvable,
        hides=root.hides,
    )
    return known


def loader_of(loader: Any) -> TrackedLoader | None:
    """What is known about a DataLoader, also about one that was there before the probe."""
    return _loaders.get(id(loader)) or built(loader)
