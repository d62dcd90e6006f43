"""Validation samples are counted twice, or not at all.

## What it finds
A divided validation set whose parts don't add up to it: the sampler repeats samples to give all ranks the same
number, an incomplete batch is dropped, shares leave a piece out, or each rank draws its samples at random.

## Why it matters
Repeated samples weigh double in the metric (a hint: a few samples of many); dropped ones are never scored (a warning:
how many depends on batch size and number of ranks, so the metric moves when nothing else does).

## Example
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
val_sampler = DistributedSampler(val_set, shuffle=False, drop_last=True)
val_loader = DataLoader(val_set, batch_size=256, sampler=val_sampler, drop_last=True)
evaluate(model, val_loader)
dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
part = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))  # every sample on one rank
val_loader = DataLoader(part, batch_size=256)
evaluate(model, val_loader)
dist.destroy_process_group()
```

## How it is seen
In the run, by the indices that all ranks' validation loaders delivered in one pass, against the validation set: which
are missing, and whether others came several times, tells what kept them out, and the text names the line; so do ranks
that all went through the same part of the set. A
metric that equals the trusted score of the same weights to six digits shows that repeated samples were counted once.
In the source, by a sampler that pads, or `drop_last=True`, on a loader that is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_reached, verified
from grader.checks.source.libraries.framework_words import ACCELERATE
from grader.checks.source.script import Script
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.left_out_samples import LeftOut
    from grader.checks.run.data.sample_ledger import Stream
    from grader.checks.run.metrics.validation_passes import Parts

SEVERITY = Severity.HINT
EXPLAINED_BY = ("DATA007",)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag `drop_last=True` (a warning) and samplers that pad (a hint) on loaders that are evaluated."""
    training = script.training
    if not script.joins_group or script.frameworks.opaque or _settles_the_rest(script):
        return
    yield from _gathered_whole(script)
    for loader in training.loaders():
        role = training.roles(loader)
        if role.trains or not (role.evaluates or (not role.draws and training.intent.of(loader) == "eval")):
            continue
        samplers = training.distributed_samplers(loader)
        dropping = [
            c
            for c in (*samplers, loader)
            if script.values.constant(script.argument(c, "drop_last")) is True and not _single(script, c)
        ]
        if dropping:
            yield Hit(
                message=f"{script.at(dropping[0])} drops what does not fill a last batch or an equal share of "
                f"the validation set: {script.quote(dropping[0])}. Those samples are never scored, and how many "
                "depends on the number of ranks.",
                hint="Leave `drop_last` out for validation; shards may differ by a sample there, because no "
                "gradient waits.",
                where=tuple(script.location(c) for c in dropping),
                severity=Severity.WARNING,
            )
        elif samplers and all(script.argument(s, "drop_last") is None for s in samplers):
            yield Hit(
                message=f"{script.at(samplers[0])} divides the validation set with {script.quote(samplers[0])}, "
                "which repeats samples where the set does not divide by the number of ranks; they count twice "
                "in the metric.",
                hint="For an exact metric give rank r the samples `range(r, len(val_set), world_size)`, or "
                "drop the repeated ones before counting.",
                where=tuple(script.location(s) for s in samplers),
            )


def _gathered_whole(script: Script) -> Iterable[Hit]:
    """`accelerator.gather` of what a loop evaluates: the last batch was filled up from the beginning of the set."""
    gathers = script.frameworks.calls("gather") if script.frameworks.words is ACCELERATE else []
    if not gathers or script.calls_given("even_batches") or script.mentioned("even_batches"):
        return
    for draw in script.training.draws:
        divided = draw.evaluates and all(script.frameworks.divides(x) for x in draw.loaders)
        inside = [c for c in gathers if divided and script.names.tree(c).inside(c, draw.loop)]
        if inside and not script.mentioned("remainder"):
            yield Hit(
                message=f"{script.at(inside[0])} gathers what each rank evaluated, {script.quote(inside[0])}, with the "
                "samples that Accelerate repeats to fill the last batch: where the set does not divide evenly they "
                "count twice in the metric.",
                hint="Write `accelerator.gather_for_metrics(…)`, which leaves the repeated samples out.",
                where=tuple(script.location(c) for c in inside),
            )


def _single(script: Script, loader: ast.Call) -> bool:
    """Batches of one sample, the default, are never incomplete."""
    size = None if loader in script.calls(SAMPLER) else script.argument(loader, "batch_size")
    return loader not in script.calls(SAMPLER) and (size is None or script.values.constant(size) == 1)


def _settles_the_rest(script: Script) -> bool:
    """A script that trims gathered results to the set's length, or scores the rest of the set apart."""
    if script.mentioned("total_size"):
        return True
    if any(call.args and _is_sampler(script, call.args[0]) for call in script.calls("len")):
        return True
    for tree in script.trees:
        for part in tree.slices:
            upper = (
                part.slice.upper if isinstance(part.slice, ast.Slice) and part.slice.lower is None else None
            )
            bounds = (upper.left, upper) if isinstance(upper, ast.BinOp) else (upper,)
            length = [o for b in bounds if b for o in script.values.origins(b) if isinstance(o, ast.Call)]
            if any(script.names.qualified(o.func) == "len" for o in length):
                return True
    return False


def _is_sampler(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "sampler":
        return True
    made = [o for o in script.values.origins(node) if isinstance(o, ast.Call)]
    return any(script.names.qualified(o.func) == SAMPLER for o in made)


def check_run(evidence: Evidence) -> Observation:
    """Flag validation passes with samples left out (warning) or repeated (hint)."""
    from grader.checks.run.metrics.evaluation_passes import unseen
    from grader.checks.run.metrics.unmeasured_epochs import unmeasured_epochs
    from grader.checks.run.metrics.validation_passes import divided_passes, same_part

    if unmeasured_epochs(evidence) is not None:
        return not_reached(
            "In most epochs no network was run on the validation samples, drawn or not: EVAL007."
        )
    good: list[str] = []
    for stream in evidence.ledger.validation:
        parts = divided_passes(evidence.ledger, stream)
        alike = same_part(evidence.ledger, stream)
        dropped = [p for p in parts if p.num_missing]
        padded = [p for p in parts if p.num_padded]
        if dropped or alike:
            return flagged(_dropped(evidence, stream, dropped or list(alike)))
        if padded and not _counted_once(evidence, padded):
            return flagged(_padded(stream, padded))
        if padded:
            good.append(
                "What is reported equals the trusted score exactly, so repeated samples were counted once."
            )
        elif any(p.num_missing is not None for p in parts):
            total = count(parts[0].num_expected or 0, "validation sample")
            good.append(f"All {total} were scored, each on one rank.")
        elif not parts:
            good += _whole(stream, evidence.ledger.num_validation or 0)
    short = _cut_short(evidence)
    if short is not None:
        return flagged(short)
    return (
        verified(good[0])
        if good
        else unseen(evidence, "No complete validation pass with known samples was seen.")
    )


def _whole(stream: Stream, mounted: int) -> list[str]:
    expected = mounted if stream.split == "validation" else 0
    whole = [
        s
        for e in stream.epochs
        for s in e.shards
        if s.exhausted and s.loader and s.num_samples == s.loader.size and s.num_samples >= expected
    ]
    if not whole:
        return []
    who = ranks(s.rank for s in whole)
    return [f"{who} scored all {count(whole[0].num_samples, 'validation sample')} of the set."]


def _cut_short(evidence: Evidence) -> Hit | None:
    """A whole pass on one or more ranks whose loader drops the last batch."""
    from grader.checks.run.data.left_out_samples import dropped
    from grader.checks.run.metrics.validation_passes import divided_passes

    for stream in evidence.ledger.validation:
        if divided_passes(evidence.ledger, stream):
            continue
        for shard in (s for e in stream.epochs for s in e.shards):
            size = shard.loader.size if shard.loader else None
            if (
                shard.exhausted
                and shard.loader
                and shard.loader.drop_last
                and size
                and shard.num_samples < size
            ):
                missing = size - shard.num_samples
                return _missing_hit(dropped(evidence, stream), (shard.rank,), missing, size, 1)
    return None


def _counted_once(evidence: Evidence, padded: list[Parts]) -> bool:
    """Whether what is reported tells that repeated samples were left out before counting."""
    from grader.checks.run.metrics.reported_counts import counted_out_of

    expected, drawn = padded[-1].num_expected or 0, padded[-1].epoch.num_drawn
    if counted_out_of(evidence, expected) and counted_out_of(evidence, drawn) is False:
        return True
    evaluation = evidence.evaluation
    if evaluation is None or evaluation.reported is None:
        return False
    return any(
        abs(told - evaluation.validation[metric.name]) < 1e-6
        for metric in evidence.metrics
        if metric.name in evaluation.validation
        for told in evaluation.reported.values(metric)
    )


def _dropped(evidence: Evidence, stream: Stream, parts: list[Parts]) -> Hit:
    from grader.checks.run.data.left_out_samples import why_left_out

    worst = max(parts, key=lambda p: p.num_missing or 0)
    cause = why_left_out(evidence, stream, worst)
    return _missing_hit(cause, worst.epoch.ranks, worst.num_missing or 0, worst.num_expected or 0, len(parts))


def _missing_hit(cause: LeftOut, who: tuple[int, ...], missing: int, total: int, num_passes: int) -> Hit:
    return Hit(
        message=(
            f"{ranks(who)} scored {total - missing:,} of {count(total, 'validation sample')}: {missing:,} were "
            f"left out in {count(num_passes, 'pass', 'passes')}. {cause.why}"
        ),
        hint=cause.hint,
        where=cause.where,
        ranks=who,
        details={"missing": missing, "expected": total},
        severity=Severity.WARNING,
    )


def _padded(stream: Stream, parts: list[Parts]) -> Hit:
    worst = max(parts, key=lambda p: p.num_padded or 0)
    epoch, padded = worst.epoch, worst.num_padded or 0
    # One sample more for each rank moves no figure by much; a share that is filled up to whole batches does.
    much = padded > len(epoch.shards)
    return Hit(
        message=(
            f"{ranks(epoch.ranks)} scored {epoch.num_drawn:,} samples of a validation set of {epoch.num_distinct:,}: "
            f"{count(padded, 'sample was', 'samples were')} counted more than once. "
            f"{at(stream.site, 'The validation loader')} pads the parts to equal length, "
            + ("so the metric weighs them more than others." if much else "so the metric is slightly off.")
        ),
        hint=(
            "Divide without padding (`Subset(val_set, range(rank, len(val_set), world_size))`), "
            "or gather the predictions and cut them to `len(val_set)`."
        ),
        where=place(stream.site),
        ranks=epoch.ranks,
        details={"repeated": padded, "first_repeated": list(epoch.shared), "samples": epoch.num_distinct},
        severity=Severity.WARNING if much else Severity.HINT,
        evidence=EvidenceKind.TRACE,
    )
