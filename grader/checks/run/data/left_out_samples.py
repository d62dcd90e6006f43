"""Why samples of a divided validation pass never came, as the ranks' shares show it: dropped, drawn at random, cut.

Which samples are missing, and whether others came several times, tells the kind; the text then names the line. Decides
nothing: that samples are missing is the rule's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, place, ranks, told_once
from grader.checks.run.data.epoch_shards import EpochShards, Shard
from grader.checks.run.data.sample_ledger import Stream
from grader.checks.run.metrics.validation_passes import Parts
from grader.checks.source.causes import lines
from grader.checks.source.data import left_out
from grader.model.finding import Location


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why samples never came: as a sentence, what to write, and where."""

    why: str
    hint: str
    where: tuple[Location, ...]


def why_left_out(evidence: Evidence, stream: Stream, parts: Parts) -> LeftOut:
    """The cause that fits which samples came how often."""
    epoch, missing = parts.epoch, parts.num_missing or 0
    if parts.own:
        return LeftOut(
            f"{at(stream.site, 'The validation loader')} goes through a data set of each rank's own, and these do not "
            "add up to the set.",
            "Deal out the whole set: rank r takes `Subset(val_set, range(rank, len(val_set), world_size))`. Shares may "
            "differ by a sample in length.",
            place(stream.site),
        )
    if parts.num_padded is None:
        return _alike(evidence, stream, parts)
    # A sampler may fill each share up by a sample before the loader drops; more than that is no filling up.
    if (parts.num_padded or 0) > len(epoch.shards):
        return _repeated(evidence, stream, epoch)
    script, site = evidence.script, stream.site
    told = any(left_out.dropping(script, site)) and missing < len(epoch.shards)
    if told or _last_batches(epoch.shards, missing):
        return dropped(evidence, stream)
    gone = sorted(set(range(parts.num_expected or 0)).difference(epoch.union))
    seen = f"no rank was given them, {_which(gone, parts.num_expected or 0)}"
    cuts = list(left_out.cut_out(script, site))[:1]
    by = f": {script.at(cuts[0])} cuts the shares with {script.quote(cuts[0])}" if cuts else ""
    return LeftOut(
        f"{at(stream.site, 'The validation loader')} goes through shares that don't add up to the set: {seen}{by}.",
        f"Cut shares that leave nothing over: rank r takes `{left_out.each_once(script, site)}`. They may differ by a "
        "sample in length.",
        told_once((*lines(script, cuts), *place(site))),
    )


def _alike(evidence: Evidence, stream: Stream, parts: Parts) -> LeftOut:
    """Each rank cut out the same part, so the shares of other ranks fell to none."""
    script, site = evidence.script, stream.site
    cuts = list(left_out.cut_out(script, site))[:1]
    by = f", cut out with {script.quote(cuts[0])}" if cuts else ""
    return LeftOut(
        f"{at(site, 'The validation loader')} goes through the same part on {ranks(parts.epoch.ranks).lower()}{by}: "
        "nobody scores the others.",
        f"Let rank r take `{left_out.each_once(script, site)}`, and let `rank` be what `dist.get_rank()` says after "
        "`init_process_group`: it has to differ on each rank.",
        told_once((*lines(script, cuts), *place(site))),
    )


def dropped(evidence: Evidence, stream: Stream) -> LeftOut:
    """`drop_last`, on the loader or on what it is given."""
    calls = list(left_out.dropping(evidence.script, stream.site))
    # A loader that a library builds may have it without a word in the text.
    where = told_once((*lines(evidence.script, calls), *place(stream.site)))
    line = f"`{where[0].path}:{where[0].line}`" if where else ""
    written = "Leave out `drop_last=True`" if calls else "Build the loader with `drop_last=False`"
    return LeftOut(
        f"{line or 'The validation loader'} drops them, so the metric is that of a smaller set, which changes with "
        "batch size and number of ranks.",
        f"{written}{f' at {line}' if line else ''}: for validation an incomplete last batch or a shorter share does no "
        "harm.",
        where,
    )


def _repeated(evidence: Evidence, stream: Stream, epoch: EpochShards) -> LeftOut:
    """Some came several times while others never did: drawn at random, or shares that overlap."""
    script, site = evidence.script, stream.site
    again = epoch.num_drawn - epoch.num_distinct
    within = sum(s.num_samples - s.num_distinct for s in epoch.shards)
    drawing = list(left_out.drawn_at_random(script, site))[:1]
    other = f"{count(again, 'other draw')} brought a sample for another time"
    if not drawing and all(s.in_order for s in epoch.shards):
        cuts = list(left_out.cut_out(script, site))[:1]
        by = f" {script.at(cuts[0])} cuts them with {script.quote(cuts[0])}." if cuts else ""
        why = f"The ranks' shares overlap instead, and {other}.{by}"
        where = lines(script, cuts)
    else:
        how = "with replacement" if within > len(epoch.shards) else "by each rank for itself"
        by = f": {script.at(drawing[0])}, {script.quote(drawing[0])}" if drawing else ""
        why = f"What is scored is drawn at random, {how}{by}. So {other}, and the metric is that of a random sample."
        where = lines(script, drawing)
    return LeftOut(
        why,
        f"Let each sample fall to one rank: give the validation loader `{left_out.each_once(script, site)}`, without a "
        "draw.",
        told_once((*where, *place(site))),
    )


def _last_batches(shards: Iterable[Shard], missing: int) -> bool:
    """Whether loaders that drop their last batch explain as many missing samples."""
    of = [s for s in shards if s.loader is not None and s.loader.drop_last]
    most = sum((s.loader.batch_size or s.batch_size) - 1 for s in of if s.loader is not None)
    return bool(of) and missing <= most


def _which(gone: list[int], total: int) -> str:
    """`samples 200 to 238, the end of the set`."""
    if not gone:
        return "whichever they are"
    if gone[-1] - gone[0] + 1 > len(gone):
        return f"from sample {gone[0]:,} to sample {gone[-1]:,}"
    piece = f"samples {gone[0]:,} to {gone[-1]:,}" if len(gone) > 1 else f"sample {gone[0]:,}"
    return f"{piece}, the end of the set" if gone[-1] == total - 1 else f"{piece}, in one piece"
