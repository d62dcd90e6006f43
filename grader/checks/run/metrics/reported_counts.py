"""Out of how many samples a reported share was counted: told by the figures alone.

Right predictions are whole numbers, so an accuracy over 239 samples is some k/239. Where no figure is one, but each is
some k/120, only one rank's 120 samples were counted, whatever was exchanged before.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, place, told_once
from grader.checks.rule import Hit
from grader.checks.run.data.sample_ledger import Stream
from grader.checks.source.metrics.reported_figures import computed_at
from grader.model.trace import Collective

_EXACT = 2e-3
"""How far a count may be from a whole number: single precision is off by less, chance rarely hits it."""
_DECIMALS = 5
_MIN_FIGURES = 3


def counted_out_of(evidence: Evidence, total: int) -> bool | None:
    """Whether all reported shares are counts out of so many samples; None where they can't tell."""
    figures = sorted({f for f in _shares(evidence) if 0.0 < f < 1.0}) if total >= 1 else []
    if len(figures) < _MIN_FIGURES or all(abs(f - round(f, _DECIMALS)) < 1e-9 for f in figures):
        return None  # too few, or rounded for the eye
    return all(_is_count(f, total) for f in figures)


def counted_instead(evidence: Evidence, total: int, others: Iterable[int]) -> str:
    """What the figures that are no counts out of `total` are counts of, in words; "" where they are none of others."""
    if counted_out_of(evidence, total) is not False:
        return ""
    apart = [f for f in _shares(evidence) if not _is_count(f, total)]
    fits = (n for n in others if n != total and all(_is_count(f, n) for f in apart))
    number = next(fits, None) if len(set(apart)) > 1 else None
    if number is None:
        return ""
    figures = count(len(apart), "reported figure")
    return f"{figures} are counts out of {count(number, 'sample')}"


def above_one(evidence: Evidence, stream: Stream, joined: Collective) -> Hit | None:
    """A reported share between 1 and the number of ranks, where a validation was divided; None where there is none.

    Args:
        evidence: all evidence of the run.
        stream: the validation data that ranks divided.
        joined: what brought something of it together.
    """
    reported = evidence.evaluation.reported if evidence.evaluation is not None else None
    metric = next((m for m in evidence.metrics if m.share), None)
    if reported is None or metric is None:
        return None
    key = metric.reported_as
    figures = reported.values(metric)
    most = max(figures, default=0.0)
    if not 1.0 < most <= len(evidence.trace.ranks):
        return None
    lines = [evidence.script.location(n) for n in computed_at(evidence.script, (key, metric.name))]
    return Hit(
        message=f"`{key}` is reported as {most:.4g}, and 1 is the most that a share can be: the right answers of all "
        f"ranks were added up (`{joined.name}` at {at(joined.site)}), and divided by the samples of one rank alone.",
        hint="Add up the samples over all ranks as well, right where the answers are added up: one `dist.all_reduce` "
        "of both, then divide.",
        where=told_once((*lines, *place(joined.site), *place(stream.site))),
        ranks=tuple(stream.ranks),
        details={"reported": list(figures)},
    )


def _shares(evidence: Evidence) -> tuple[float, ...]:
    """What is reported of the first metric that is a share."""
    reported = evidence.evaluation.reported if evidence.evaluation is not None else None
    share = next((metric for metric in evidence.metrics if metric.share), None)
    return reported.values(share) if reported is not None and share is not None else ()


def _is_count(figure: float, total: int) -> bool:
    return abs(figure * total - round(figure * total)) <= _EXACT
