"""The pages of all that is found, for reports that explain a finding beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from grader.checks.rule import load_rules
from grader.checks.source.script import SYNTAX
from grader.checks.syntax_page import PAGE
from grader.plugins.sources import RULES, Stamp, stamp
from grader.report.findings.cards import title_of


def rule_pages() -> dict[str, str]:
    """Page in Markdown by code, for every rule there is and for files that do not parse."""
    return {SYNTAX: PAGE, **{rule.code: rule.page for rule in load_rules()}}


def rule_titles() -> Mapping[str, str]:
    """A name for people by code, of all that has a page; read anew where a rule of the course has changed."""
    return _titles(stamp(RULES))


@lru_cache(maxsize=4)
def _titles(_stamp: Stamp) -> Mapping[str, str]:
    return {code: title_of(code, page) for code, page in rule_pages().items()}
