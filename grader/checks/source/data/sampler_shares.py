"""Shares that the text itself deals wrongly: samplers told another rank or seed, streams that every worker repeats.

Reads what samplers and streams are told; what a run really drew is the ledger's matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.ranks.rank_expressions import Strength
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN, walk
from grader.checks.source.training_loops import SAMPLER
from grader.checks.source.values.seeds import Seeded, seeded


@dataclass(frozen=True, slots=True)
class WrongShare:
    """One call that deals wrongly: what it does, what to write, and whether it shows on a single node."""

    call: ast.Call
    what: str
    hint: str
    on_one_node: bool = True


def wrong_shares(script: Script) -> Iterator[WrongShare]:
    """Samplers and streams that give ranks or workers the same samples."""
    for sampler in script.calls(SAMPLER):
        if _scores(script, sampler) or script.guards.partial(sampler) or script.guards.alone(sampler):
            continue
        found = _wrong_rank(script, sampler) or _wrong_seed(script, sampler)
        if found is not None:
            yield found
    for loader in script.training.loaders():
        owner = script.sharding.iterable(loader)
        if owner is not None and _repeats_by_worker(script, loader, owner):
            yield WrongShare(
                loader,
                f"starts several workers, {script.quote(loader)}, and the stream `{owner.name}` does not ask which "
                "worker it runs in: each worker yields every sample once more",
                "Let `__iter__` ask `torch.utils.data.get_worker_info()` and yield every n-th from `info.id` on.",
            )


def _scores(script: Script, sampler: ast.Call) -> bool:
    loaders = [c for c in script.training.loaders() if sampler in script.training.samplers(c)]
    return bool(loaders) and all(
        script.training.roles(c).evaluates or script.training.intent.of(c) == "eval" for c in loaders
    )


def _wrong_rank(script: Script, sampler: ast.Call) -> WrongShare | None:
    rank, replicas = script.argument(sampler, "rank"), script.argument(sampler, "num_replicas")
    if rank is None or rank is UNKNOWN:
        return None
    alone = replicas is not None and script.values.constant(replicas) == 1
    told = script.values.constant(rank)
    if isinstance(told, int) and not isinstance(told, bool) and not alone:
        return WrongShare(
            sampler,
            f"tells the sampler on every rank that its rank is {told}, {script.quote(sampler)}: all of them take the "
            "same share",
            "Pass `rank=dist.get_rank()`, or leave it out: the sampler asks the process group by itself.",
        )
    origins = script.values.origins(rank)
    local = bool(origins) and all(
        {script.ranks.environment(n) for n in walk(o)} == {"", "LOCAL_RANK"} for o in origins
    )
    if local and (replicas is None or script.ranks.world(replicas) > Strength.WEAK):
        return WrongShare(
            sampler,
            f"tells the sampler the local rank, {script.quote(sampler)}: on a second machine the same numbers come "
            "again, and so do the same shares",
            "Pass `rank=dist.get_rank()`, which counts through all machines.",
            on_one_node=False,
        )
    return None


def _wrong_seed(script: Script, sampler: ast.Call) -> WrongShare | None:
    seed = script.given(sampler, "seed")
    if seed is None:
        return None
    state = seeded(script, seed)
    if state not in (Seeded.BY_RANK, Seeded.NEVER):
        return None
    how = "with the rank" if state is Seeded.BY_RANK else "with a number that each rank draws for itself"
    return WrongShare(
        sampler,
        f"seeds the sampler {how}, {script.quote(sampler)}: each rank cuts its share out of another shuffle",
        "Give the sampler the same `seed` on every rank, or leave it out; `set_epoch` varies the order.",
    )


def _repeats_by_worker(script: Script, loader: ast.Call, owner: ast.ClassDef) -> bool:
    workers = script.given(loader, "num_workers")
    if workers is None or script.argument(loader, "worker_init_fn") is not None:
        return False
    number = script.values.constant(workers)
    if not isinstance(number, int) or number < 2:
        return False
    asked = bool(script.called("get_worker_info"))
    written_out = any(script.graph.class_of.get(f) is owner for f in script.graph.methods("__iter__"))
    return written_out and not asked and not script.sharding.draws(owner)
