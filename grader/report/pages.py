"""The rules' own pages, for reports that explain a finding beside it."""

from __future__ import annotations

from grader.checks.rule import load_rules


def rule_pages() -> dict[str, str]:
    """Page in Markdown by code, for every rule there is."""
    return {rule.code: rule.page for rule in load_rules()}
