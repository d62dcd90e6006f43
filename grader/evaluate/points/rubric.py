"""One rubric item against the evidence: which share of its points is earned, and what became of the rest.

Pure. Hints and review findings cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grader.checks.rule import in_words, load_rules
from grader.evaluate.points.outcome import (
    NOT_SCORED,
    PREPARED_OTHERWISE,
    UNREAD,
    WRONG,
    Outcome,
    Part,
    answer,
    network,
    pay,
    time,
)
from grader.evaluate.points.scale import ScaledItem
from grader.model.finding import EvidenceKind, Finding, Severity, family_of
from grader.model.grade import CheckResult, ItemState, RubricResult, State
from grader.model.task import TIME, RubricItem, Task

_ENDED = "The run ended before this could be seen."
_TEXT_ALONE = "Only the text speaks of it, and the run did nothing of the kind."
# Of several parts, the one that says most about what is missing speaks for the item.
_WORST = (
    ItemState.LOST, ItemState.NOT_REACHED, ItemState.PARTLY, ItemState.NOT_SEEN, ItemState.EARNED,
)  # fmt: skip


def charges(
    items: Sequence[ScaledItem], findings: Iterable[Finding], *, completed: bool = True
) -> dict[str, tuple[str, ...]]:
    """Item's id → codes of findings that no item names and that cost its points all the same.

    What was seen in a run, what only the text can show, and what gates acceptance is charged to the first item about
    the same family of faults: nobody is told at once that a thing is wrong and that it earned its points. An error
    of a family that no item is about spoils what the run came to, and costs there; where the run ended before that
    (not `completed`), it has cost what was not reached.
    """
    shown = [scaled for scaled in items if not scaled.left_out]
    results = sorted(shown, key=lambda one: not one.item.about_network)
    came_to = next((one for one in results if one.item.about_network or one.item.answer), None)
    only_read = {rule.code for rule in load_rules() if rule.check_run is None}
    named = {NOT_SCORED, PREPARED_OTHERWISE, *(code for scaled in items for code in scaled.item.requires)}
    if any(scaled.item.answer for scaled in items):
        named |= {UNREAD, WRONG}
    charged: dict[str, set[str]] = {}
    for finding in findings:
        seen = finding.evidence is not EvidenceKind.SOURCE or finding.code in only_read
        grave = finding.severity is Severity.ERROR or seen
        # What follows from it and is named costs already.
        known = named.intersection((finding.code, *finding.details.get("explains", ())))
        if known or not costs(finding) or not grave:
            continue
        family = family_of(finding.code)
        about = next((one for one in shown if family in map(family_of, one.item.requires)), None)
        if about is None and completed and finding.severity is Severity.ERROR:
            about = came_to
        if about is not None:
            charged.setdefault(about.item.id, set()).add(finding.code)
    return {name: tuple(sorted(codes)) for name, codes in charged.items()}


def costs(finding: Finding) -> bool:
    """Whether a finding costs points where the rubric lists it: warnings and errors that the run did not refute."""
    return _costs(finding.severity) and not finding.refuted


def _costs(severity: Severity) -> bool:
    return severity in {Severity.ERROR, Severity.WARNING}


def judge_item(scaled: ScaledItem, charged: tuple[str, ...], outcome: Outcome) -> RubricResult:
    """Points, state and reason of one item.

    Args:
        scaled: the item as it is judged here.
        charged: codes of findings that the rubric names nowhere and that cost points here (see `charges`).
        outcome: what it is judged on.
    """
    item, worth = scaled.item, scaled.points
    parts = _parts(item, charged, outcome) if not scaled.left_out else []
    worst = min(parts, key=lambda part: _WORST.index(part.state), default=None)
    share = 1.0
    for part in parts:
        share *= part.earned
    earned = round(worth * share, 2)
    part_of_it = f" That earns {earned:g} of {worth:g} points." if 0 < earned < worth else ""
    return RubricResult(
        id=item.id,
        title=item.title,
        must=item.must,
        points=worth,
        full_points=item.points,
        earned=earned,
        state=worst.state if worst is not None else ItemState.NOT_SHOWN,
        evidence=worst.evidence if worst is not None else (),
        reason=f"{worst.reason}{part_of_it}" if worst is not None else scaled.left_out,
        codes=tuple(sorted({code for part in parts for code in part.codes})),
        not_seen=round(worth * max((part.not_seen for part in parts), default=0.0), 2),
    )


def foresee_item(scaled: ScaledItem, charged: tuple[str, ...], findings: Iterable[Finding]) -> RubricResult:
    """What one item comes to where a run shows these findings and nothing else is amiss."""
    item = scaled.item
    codes = () if scaled.left_out else item.requires + charged
    found = [f for f in findings if f.code in codes and costs(f)]
    folded = {
        c: grave
        for f in findings
        if costs(f)
        for c, grave in f.folded.items()
        if c in codes and _costs(grave)
    }
    lost = {f.code for f in found} | folded.keys()
    earned = 0.0 if _takes_all(found, folded) else 1 - len(lost) / max(1, len(codes))
    state = ItemState.EARNED if not lost else ItemState.PARTLY if earned > 0 else ItemState.LOST
    return RubricResult(
        id=item.id,
        title=item.title,
        must=item.must,
        points=scaled.points,
        full_points=item.points,
        earned=round(scaled.points * earned, 2),
        state=ItemState.NOT_SHOWN if scaled.left_out else state,
        evidence=(EvidenceKind.SOURCE,),
        reason=scaled.left_out or " ".join(f.message for f in found),
        codes=tuple(sorted(lost)),
    )


def _takes_all(found: Iterable[Finding], folded: Mapping[str, Severity]) -> bool:
    """An error takes all points of an item, whether it is told by itself or was folded into its cause."""
    return Severity.ERROR in (*folded.values(), *(f.severity for f in found))


def _parts(item: RubricItem, charged: tuple[str, ...], outcome: Outcome) -> list[Part]:
    parts = []
    metric = outcome.task.metric(item.metric) if item.metric is not None else None
    if metric is not None:
        parts.append(network(item, metric, outcome))
    elif item.metric == TIME:
        parts.append(time(item, outcome))
    if item.answer:
        parts.append(answer(item.answer, outcome))
    if item.requires or charged:
        parts.append(_requires(item.requires + charged, outcome))
    return parts


def _requires(codes: tuple[str, ...], outcome: Outcome) -> Part:
    """Each code has an equal share; an error takes them all, also what nobody could look at because of it."""
    results = {c.code: c for c in outcome.checks if c.code in codes}
    found = [f for f in outcome.findings if _is_about(codes, f, outcome.task) and costs(f)]
    told = {f.code for f in outcome.findings}
    severities = {c: grave for f in outcome.findings for c, grave in f.folded.items()}
    # Contradicted without a finding of its own: the engine folded it into its cause, and the fault stands all the same.
    folded = {
        c: grave
        for c, r in results.items()
        if r.state is State.CONTRADICTED
        and c not in told
        and _costs(grave := severities.get(c, Severity.ERROR))
    }
    lost = {f.code for f in found} | folded.keys()
    missing = [c for c in codes if c not in lost and not _observed(results.get(c), outcome)]
    # What was never begun is not a thing that somebody failed to watch.
    watched = outcome.completed and outcome.trained
    unseen = [c for c in missing if watched and c in results and results[c].state is State.NOT_OBSERVABLE]
    not_seen = len(unseen) / len(codes)
    earned = 1 - (len(lost) + len(missing)) / len(codes) + (not_seen if outcome.vouched else 0.0)
    right = {e for c, r in results.items() if c not in missing for e in r.evidence}
    rest = _counted(len(codes), len(lost), len(missing) - len(unseen), len(unseen))
    if unseen:
        rest += f" {pay(outcome, 'What was not seen')}"
    if lost:
        kinds = {f.evidence for f in found} or {e for c in lost for e in results[c].evidence}
        whole = _takes_all(found, folded)
        share = 0.0 if whole else max(0.0, earned)
        state = ItemState.PARTLY if share > 0 else ItemState.LOST
        reason = _why_lost(found, results, lost) + (rest if share > 0 else "")
        return Part(share, state, reason, _in_order(kinds), tuple(sorted(lost)), 0.0 if whole else not_seen)
    if len(missing) > len(unseen):
        first = next(c for c in missing if c not in unseen)
        state = ItemState.PARTLY if earned > 0 else ItemState.NOT_REACHED
        untold = outcome.not_reached(f"{first}: {_why_missing(results.get(first), outcome)}")
        reason = untold.reason + (rest if earned > 0 else "")
        return Part(max(0.0, earned), state, reason, _in_order(right), not_seen=not_seen)
    if unseen:
        what = "It" if len(unseen) == len(codes) else "This part of the item"
        reason = f"{', '.join(unseen)}: {results[unseen[0]].reason} {pay(outcome, what)}"
        return Part(max(0.0, earned), ItemState.NOT_SEEN, reason, _in_order(right), not_seen=not_seen)
    return Part(1.0, ItemState.EARNED, _why_right(codes, results), _in_order(right))


def _is_about(codes: tuple[str, ...], finding: Finding, task: Task) -> bool:
    """Whether an item that asks for these codes is about a finding.

    Not where the run showed all else that it asks for to be right, and another item is about what is wrong.
    """
    elsewhere = any(finding.concerns(item.requires) for item in task.rubric)
    return finding.concerns(codes) or (finding.code in codes and not elsewhere)


def _counted(num: int, num_lost: int, num_not_reached: int, num_not_seen: int) -> str:
    """How many of an item's parts are not simply right: ` Of its 3 parts 1 is lost.`."""
    told = []
    if num_lost:
        told.append(f"{num_lost} {'is' if num_lost == 1 else 'are'} lost")
    for number, what in ((num_not_reached, "reached"), (num_not_seen, "seen")):
        if number:
            told.append(f"{number} {'was' if number == 1 else 'were'} not {what}")
    return f" Of its {num} parts {', '.join(told)}."


def _observed(result: CheckResult | None, outcome: Outcome) -> bool:
    if result is None or result.state in (State.NOT_OBSERVABLE, State.NOT_REACHED):
        return False
    # What a run never did is no merit of one that did no work; and reading the text of a script that did not come to
    # its end, or trained nothing, shows intentions, not behaviour.
    if outcome.trained and (outcome.completed or not result.evidence):
        return True
    return any(kind is not EvidenceKind.SOURCE for kind in result.evidence)


def _why_missing(result: CheckResult | None, outcome: Outcome) -> str:
    if result is None:
        return "This task does not look at it."
    if result.state not in (State.NOT_REACHED, State.NOT_OBSERVABLE):
        return _ENDED if not outcome.completed else result.reason if not result.evidence else _TEXT_ALONE
    return result.reason


def _why_lost(found: list[Finding], results: dict[str, CheckResult], lost: set[str]) -> str:
    ordered = sorted(found, key=lambda f: (f.severity.rank, f.code))
    if not ordered:
        code = min(lost)
        return f"{code}: {results[code].reason}"
    told = {f.code for f in ordered}
    text = f"{ordered[0].code}: {ordered[0].message}"
    if more := sorted(told - {ordered[0].code}):
        text += f" Also found: {' and '.join(map(in_words, more))}."
    if folded := sorted(lost - told):
        text += f" What follows from it: {' and '.join(map(in_words, folded))}."
    return text


def _why_right(codes: tuple[str, ...], results: dict[str, CheckResult]) -> str:
    reasons: list[str] = []
    for code in codes:
        if results[code].state is State.VERIFIED and results[code].reason not in reasons:
            reasons.append(results[code].reason)
    return " ".join(reasons) or "Nothing worse than a hint was found."


def _in_order(kinds: set[EvidenceKind]) -> tuple[EvidenceKind, ...]:
    return tuple(kind for kind in EvidenceKind if kind in kinds)
