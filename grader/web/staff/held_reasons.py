"""Why an attempt is held, in words that one can decide by: the stored reasons, and the facts behind them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.model.grade import Grade
from grader.report.json_report import from_json
from grader.translation import N_, gettext

_CODED = re.compile(r"([A-Z]{2,12}[0-9]{1,4}): (.*)", re.DOTALL)
_MOST_FACTS = 12
_UNKNOWN = N_("The reasons of this attempt can no longer be read. Look at its report and at its source.")


@dataclass(frozen=True, slots=True)
class HeldReason:
    """One reason: the rule that it comes from ("": none), its sentence, and the facts that the sentence leaves out."""

    code: str
    text: str
    facts: tuple[str, ...] = ()


def held_reasons(grade: Grade | None) -> tuple[HeldReason, ...]:
    """The reasons of a held grade; None: a grade that cannot be read."""
    if grade is None:
        return (HeldReason("", gettext(_UNKNOWN)),)
    return tuple(_reason(grade, text) for text in grade.review) or (HeldReason("", grade.verdict_reason),)


def reasons_of(document: str) -> tuple[HeldReason, ...]:
    """The same of a grade as it is stored."""
    try:
        return held_reasons(from_json(document))
    except ValueError:
        return held_reasons(None)


def _reason(grade: Grade, text: str) -> HeldReason:
    found = _CODED.fullmatch(text)
    if found is None:
        return HeldReason("", text)
    code, sentence = found.groups()
    facts: list[str] = []
    for finding in grade.findings:
        if finding.code == code and finding.message == sentence:
            told = finding.details.get("holding_facts") or finding.details.get("facts") or ()
            facts += [str(fact) for fact in told if str(fact) not in sentence]
    return HeldReason(code, sentence, tuple(dict.fromkeys(facts))[:_MOST_FACTS])
