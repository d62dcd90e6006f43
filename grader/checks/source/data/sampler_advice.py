"""What to write at a loader that gives every rank the whole set: a sampler, or the one that is there otherwise."""

from __future__ import annotations

import ast

from grader.checks.source.causes import CauseInText
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import Script
from grader.checks.source.training_loops import SAMPLER

DIVIDE = (
    "Give each rank its share: `sampler = DistributedSampler(train_set)`, "
    "`DataLoader(train_set, batch_size=…, sampler=sampler)` without `shuffle=True`, "
    "and `sampler.set_epoch(epoch)` at the start of each epoch."
)
"""Where nothing of the loader is known."""


def divided(script: Script, loader: ast.Call) -> str:
    """What to write at a loader of a whole set: the sampler that is there already, or a new one."""
    dataset = script.argument(loader, "dataset")
    if not isinstance(dataset, ast.Name | ast.Attribute):
        return DIVIDE
    written, place = ast.unparse(dataset), script.at(loader)
    whole = script.argument(loader, "shuffle") is not None
    for made in script.calls(SAMPLER):
        name = held_name(script, made, loader)
        if name and made.args and ast.unparse(made.args[0]) == written:
            instead = "in place of `shuffle`" if whole else "as well"
            return f"Give the loader at {place} the sampler that is there: `sampler={name}` {instead}."
    instead = " in place of `shuffle`" if whole else ""
    return (
        f"Give each rank its share: `sampler = DistributedSampler({written})` above {place}, "
        f"`sampler=sampler`{instead} in the loader, and `sampler.set_epoch(epoch)` at the start of each epoch."
    )


def for_one_rank(script: Script, loader: ast.Call | None) -> CauseInText | None:
    """The sampler of a loader that a run has seen divide among one rank, where the text tells it so."""
    samplers = script.training.distributed_samplers(loader) if loader is not None else []
    for sampler in samplers:
        number = script.given(sampler, "num_replicas")
        if len(samplers) != 1 or number is None:
            continue
        given = {"num_replicas": number, "rank": script.given(sampler, "rank")}
        written = ", ".join(
            f"{name}={ast.unparse(value)}" for name, value in given.items() if value is not None
        )
        place = script.at(sampler)
        return CauseInText(
            (sampler,),
            f"{place} tells the `DistributedSampler` that there is one rank, `num_replicas={ast.unparse(number)}`",
            f"Leave `{written}` out at {place}: the sampler asks the process group for both, and gives each rank its "
            "share. Ranks that shard one model (FSDP) work on batches of their own, too.",
        )
    return None
