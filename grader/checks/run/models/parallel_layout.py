"""Which ranks hold parts of one model, and which hold copies: one account of how a run was laid out.

Put together from meshes, from what was given which of their dimensions, and from how distributed tensors are split.
Ranks that hold parts of one model (tensor, pipeline, context parallel) work on the same samples; only ranks of
different models divide the data, and only ranks with equal parts can be compared. Where nothing of this kind is told,
every rank has a model of its own, as in data parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from grader.checks.phrases import listed
from grader.model.trace import RankTrace, Trace, Wrap

Ranks: TypeAlias = tuple[int, ...]
Line: TypeAlias = tuple[str, Ranks]
"""A mesh dimension's name, and ranks along it."""

_FIRST = 4
SHARDING = ("fsdp", "fsdp2")
"""Kinds of wrappers that split parameters among ranks."""
_MAX_BYTES = 8
"""Of one number."""
_MOST = 0.5
_SENDING = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
_EXCHANGING = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", *_SENDING)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the ranks of one run share the work.

    Attributes:
        models: ranks that must meet the same samples, every rank in one of them; single ones in data parallelism.
        copies: ranks that hold equal parts, every rank in one of them.
        kinds: ways in which models are divided: `tensor`, `expert`, `pipeline`, `context`, or `split` where only the
            parameters tell.
        lines: the dimensions along which they are: name and ranks.
        by_hand: what hints at a model that the script divides by its own means, so that nobody can tell who holds what;
            else "".
    """

    models: tuple[Ranks, ...]
    copies: tuple[Ranks, ...]
    kinds: frozenset[str]
    lines: tuple[Line, ...]
    by_hand: str

    @classmethod
    def of(cls, trace: Trace) -> Layout:
        """The layout of a run; takes any trace, however little it tells."""
        return _layout(trace)

    @property
    def divided(self) -> bool:
        """Whether any model is held by several ranks."""
        return any(len(model) > 1 for model in self.models)

    @property
    def replicated(self) -> bool:
        """Whether several ranks hold equal parts."""
        return any(len(copy) > 1 for copy in self.copies)

    def partners(self, rank: int) -> Ranks:
        """The ranks of this one's model, itself among them."""
        return next((model for model in self.models if rank in model), (rank,))

    def with_partners(self, ranks: Iterable[int]) -> Ranks:
        """These ranks, and all that hold parts of their models."""
        return tuple(sorted({partner for rank in ranks for partner in self.partners(rank)}))

    def one_each(self, ranks: Sequence[RankTrace]) -> tuple[RankTrace, ...]:
        """Of these, the first of each model."""
        first = {self.partners(r.rank): r for r in reversed(ranks)}
        return tuple(r for r in ranks if first[self.partners(r.rank)] is r)

    def pairs(self, ranks: Sequence[RankTrace]) -> Iterator[tuple[RankTrace, RankTrace]]:
        """Of these, the first of each set of copies with each of the others."""
        for copy in self.copies:
            found = [r for r in ranks if r.rank in copy]
            yield from ((found[0], other) for other in found[1:])

    def joins(self, groups: Iterable[Ranks | None], ranks: Sequence[int]) -> bool:
        """Whether exchanges among these groups of ranks (None: all) bring together the models of all these ranks."""
        merged = _Merged(len(self.models))
        number = {rank: n for n, model in enumerate(self.models) for rank in model}
        for group in groups:
            merged.join(
                [number[r] for r in group if r in number] if group is not None else range(len(self.models))
            )
        return len({merged.root(number[r]) for r in ranks if r in number}) <= 1

    def dimension(self, ranks: Iterable[int]) -> str:
        """What the dimensions between these ranks are called: " (dimension `tp`)"; "" where they have no name."""
        wanted = set(ranks)
        names = dict.fromkeys(
            f"`{name}`" for name, line in self.lines if name and len(wanted & set(line)) > 1
        )
        return f" (dimension{'s' if len(names) > 1 else ''} {listed(names)})" if names else ""


def sharding_wraps(rank: RankTrace) -> tuple[Wrap, ...]:
    """Wrappers that split what is stepped on among ranks; a small module beside it makes no difference."""
    wraps = tuple(w for w in rank.wraps if w.kind in SHARDING)
    stepped = max((e.fields.get("param_bytes") or 0 for e in rank.events("held")), default=0)
    return wraps if sum(w.num_params for w in wraps) * _MAX_BYTES >= _MOST * stepped else ()


class _Merged:
    """Numbers that belong together."""

    def __init__(self, count: int) -> None:
        self._up = list(range(count))

    def root(self, number: int) -> int:
        while self._up[number] != number:
            number = self._up[number]
        return number

    def join(self, numbers: Iterable[int]) -> None:
        roots = sorted({self.root(n) for n in numbers})
        for other in roots[1:]:
            self._up[other] = roots[0]

    def sets(self) -> tuple[Ranks, ...]:
        found: dict[int, list[int]] = {}
        for number in range(len(self._up)):
            found.setdefault(self.root(number), []).append(number)
        return tuple(tuple(members) for members in found.values())


def _layout(trace: Trace) -> Layout:
    world = len(trace.ranks)
    same, parts = _Merged(world), _Merged(world)
    kinds: set[str] = set()
    dims: dict[Line, None] = {}
    for rank in trace.ranks:
        for kind, line in (*_given(rank), *_splits(rank, world)):
            if len(line[1]) < 2 or rank.rank not in line[1] or not all(0 <= r < world for r in line[1]):
                continue
            if kind not in ("expert", "split") or (kind == "split" and _drew_alike(trace, line[1])):
                same.join(line[1])
            if kind != "context":  # copies, of which each works on its part of every sample
                parts.join(line[1])
            kinds.add(kind)
            dims[line] = None
        for event in rank.events("mesh"):
            dims |= dict.fromkeys(lines_told(event.fields.get("dims")))
    return Layout(
        same.sets(),
        tuple(_copies(trace, parts.sets())),
        frozenset(kinds),
        tuple(dims),
        "" if kinds else _by_hand(trace),
    )


def _given(rank: RankTrace) -> Iterator[tuple[str, Line]]:
    for event in rank.events("parallel"):
        for line in lines_told(event.fields.get("dims")):
            yield str(event.fields.get("kind")), line


def _splits(rank: RankTrace, world: int) -> Iterator[tuple[str, Line]]:
    """Dimensions along which parameters are split, other than by wrappers that put them together for each use."""
    known = {w.parts or tuple(range(world)) for w in sharding_wraps(rank)} | {
        line[1] for _, line in _given(rank)
    }
    for event in rank.events("placed"):
        for line in lines_told(event.fields.get("splits")):
            if line[1] not in known:
                yield "split", line


def _drew_alike(trace: Trace, ranks: Ranks) -> bool:
    """Whether these ranks began with the same batches: distributed tensors may as well hold a part of each batch."""
    heads = {tuple(b.indices for b in trace.ranks[r].batches[:_FIRST]) for r in ranks}
    return len(heads) == 1 and None not in next(iter(heads))


def lines_told(told: Any) -> list[Line]:
    """Names and ranks as told; what is of another shape is left out."""
    found = []
    for one in told if isinstance(told, list) else ():
        pair = isinstance(one, list) and len(one) == 2 and isinstance(one[1], list)
        if pair and all(isinstance(r, int) for r in one[1]):
            found.append((str(one[0]), tuple(one[1])))
    return found


def _copies(trace: Trace, models: tuple[Ranks, ...]) -> Iterator[Ranks]:
    """Ranks at the same place in their models; of these, under a wrapper that shards, those which it makes equal."""
    across = {r.rank: (w.replicas or (r.rank,)) for r in trace.ranks for w in sharding_wraps(r)}
    sizes = {len(model) for model in models}
    places = zip(*models, strict=True) if len(sizes) == 1 else ((r,) for model in models for r in model)
    for ranks in places:
        left = list(ranks)
        while left:
            equal = [r for r in left if r == left[0] or (left[0] not in across or r in across[left[0]])]
            yield tuple(equal)
            left = [r for r in left if r not in equal]


def _by_hand(trace: Trace) -> str:
    calls = [c for r in trace.ranks for c in r.collectives]
    given = any(e.fields.get("given") is True for r in trace.ranks for e in r.events("backward"))
    if given and any(c.name in _SENDING for c in calls):
        return "Ranks send one another what goes forward and backward, as the stages of a pipeline do"
    if any(sharding_wraps(r) or any(w.num_sync_batchnorm for w in r.wraps) for r in trace.ranks):
        return ""
    if any(c.forward and c.name.startswith(_EXCHANGING) for c in calls):
        return "The ranks' models exchange values within their forward passes, as the parts of one model do"
    return ""
