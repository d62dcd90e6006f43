"""A hint that a task calls costly is a warning there, once the run has shown it; elsewhere it stays free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.checks.policy import apply_rules, apply_source_rules
from grader.model.finding import Severity

NEVER_DESTROYED = """\
import torch.distributed as dist
dist.init_process_group("gloo")
"""


def undestroyed(tell: Any) -> Any:
    story = tell.Story()
    story.text = NEVER_DESTROYED
    story.group()
    for rank in story.ranks:
        rank.event("end", group_destroyed=False)
    return story


def severities(findings: Any) -> list[Severity]:
    return [f.severity for f in findings if f.code == "DIST002"]


def test_what_the_run_showed_costs_where_the_task_says_so(tell: Any, only: Any) -> None:
    seen = undestroyed(tell).evidence()
    assert severities(apply_rules(seen, only("DIST002"))[0]) == [Severity.HINT]
    costly = replace(only("DIST002"), costly=("DIST002",))
    assert severities(apply_rules(seen, costly)[0]) == [Severity.WARNING]


def test_what_only_the_text_suggests_stays_free(tell: Any, only: Any) -> None:
    costly = replace(only("DIST002"), costly=("DIST002",))
    script = undestroyed(tell).evidence().script
    assert severities(apply_source_rules(script, costly)[0]) == [Severity.HINT]


def test_other_codes_are_left_alone(tell: Any, only: Any) -> None:
    costly = replace(only("DIST002"), costly=("GRAD004",))
    assert severities(apply_rules(undestroyed(tell).evidence(), costly)[0]) == [Severity.HINT]
