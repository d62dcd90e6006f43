"""What a script's text comes to in a task before it is run: what would cost points there, and what would gate. Pure.

The same scale, charges and gates as a grade's, for the case that a run confirms what the text shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.checks.policy import expected_findings
from grader.checks.source.script import Script
from grader.evaluate.points.rubric import charges, foresee_item
from grader.evaluate.points.scale import ScaleConditions, ScaledItem, scale
from grader.evaluate.points.score import gating_codes, missed
from grader.model.finding import EvidenceKind, Finding
from grader.model.grade import RubricResult
from grader.model.task import Profile, Task


@dataclass(frozen=True, slots=True)
class Foresight:
    """Findings of the rules that the task judges, and what they come to.

    Attributes:
        findings: as a run there would have them, folded into their causes.
        items: the scale there; rubric: what each item would keep.
        gating: codes that would stand in the way of acceptance, as in `Grade`.
    """

    findings: tuple[Finding, ...]
    items: tuple[ScaledItem, ...]
    rubric: tuple[RubricResult, ...]
    gating: tuple[str, ...]


def foresee(script: Script, task: Task, profile: Profile) -> Foresight:
    """Points and gates as far as the text shows them.

    Raises:
        TaskError, InfraError: a rule failed.
    """
    conditions = ScaleConditions.planned(task, profile)
    findings = expected_findings(script, task, profile.name, lambda rule: not conditions.lacking(rule.needs))
    items = scale(task, conditions)
    charged = charges(items, findings)
    rubric = tuple(foresee_item(item, charged.get(item.item.id, ()), findings) for item in items)
    read = tuple(replace(finding, evidence=EvidenceKind.SOURCE) for finding in findings)
    return Foresight(read, items, rubric, gating_codes(missed(task, findings, rubric, charged)))
