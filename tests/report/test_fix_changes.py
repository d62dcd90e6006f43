"""A fix is shown as a small diff under its hint: what the edits make of the text; one that does not fit is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.checks.lint import lint
from grader.model.finding import Finding
from grader.model.fix import Edit, Fix, mended
from grader.model.submission import ENTRY_POINT, SourceFile, Submission
from grader.report.changes.text_diff import LineSign
from grader.report.findings.fix_changes import fix_changes
from grader.report.html.attempt_page import to_html
from tests.report import factory
from tests.report.document import Document

FIXTURES = Path(__file__).parents[1] / "checks" / "fixtures"


def submission(path: Path) -> Submission:
    return Submission("mine", (SourceFile(ENTRY_POINT, path.read_text(encoding="utf-8")),))


def shown(finding: Finding, text: Submission) -> list[tuple[LineSign, str]]:
    return [(line.sign, line.text) for c in fix_changes(finding, text) for h in c.hunks for line in h.lines]


@pytest.mark.parametrize("code", sorted(p.name for p in FIXTURES.iterdir() if p.name.isupper()))
def test_the_diff_is_what_the_edits_make(code: str) -> None:
    for path in sorted((FIXTURES / code).glob("flagged_*.py")):
        text = submission(path)
        for finding in (one for one in lint(text) if one.fix is not None):
            assert finding.fix is not None
            (change,) = fix_changes(finding, text)
            after = mended(text, [finding.fix]).lines(ENTRY_POINT)
            lines = [line for hunk in change.hunks for line in hunk.lines]
            assert change.num_left_out == 0
            assert any(line.sign is not LineSign.KEPT for line in lines)
            assert len(lines) <= 40
            for line in lines:
                if line.old_number is not None:
                    assert line.text == text.line(ENTRY_POINT, line.old_number)
                if line.new_number is not None:
                    assert line.text == after[line.new_number - 1]
            added = sum(line.sign is LineSign.ADDED for line in lines)
            removed = sum(line.sign is LineSign.REMOVED for line in lines)
            assert len(after) - len(text.lines(ENTRY_POINT)) == added - removed


def test_only_the_lines_that_change_are_shown_with_one_around_them() -> None:
    text = Submission("mine", (SourceFile(ENTRY_POINT, "a\nb\nc\nd\ne\nf\ng\n"),))
    fix = Fix("Two places.", (Edit(ENTRY_POINT, 2, 1, 2, 2, "B"), Edit(ENTRY_POINT, 6, 1, 7, 1, "")))
    finding = replace(factory.DATA001, fix=fix)
    kept, added, removed = LineSign.KEPT, LineSign.ADDED, LineSign.REMOVED
    assert shown(finding, text) == [
        (kept, "a"), (removed, "b"), (added, "B"), (kept, "c"), (kept, "e"), (removed, "f"), (kept, "g"),
    ]  # fmt: skip


def test_a_fix_for_another_text_is_not_shown() -> None:
    text = Submission("mine", (SourceFile(ENTRY_POINT, "a\n"),))
    far = replace(factory.DATA001, fix=Fix("Too far.", (Edit(ENTRY_POINT, 9, 1, 9, 2, "B"),)))
    elsewhere = replace(factory.DATA001, fix=Fix("Elsewhere.", (Edit("b.py", 1, 1, 1, 2, "B"),)))
    assert fix_changes(factory.DATA001, text) == fix_changes(far, text) == fix_changes(elsewhere, text) == ()


def test_the_page_has_the_diff_under_the_hint_and_says_what_writes_it() -> None:
    whole = factory.rejected()
    line = whole.submission.line("train.py", 23)
    fix = Fix(
        "Gives each rank its <b>share</b>.", (Edit("train.py", 23, 1, 23, len(line) + 1, "    x = '<i>'"),)
    )
    findings = tuple(replace(f, fix=fix) if f.code == "DATA001" else f for f in whole.grade.findings)
    page = to_html(replace(whole, grade=replace(whole.grade, findings=findings)), factory.PAGES)
    assert not Document(page).unbalanced
    assert "<b>share</b>" not in page
    assert "&lt;b&gt;share&lt;/b&gt;" in page
    assert "<ins>    x = &#39;&lt;i&gt;&#39;</ins>" in page
    assert page.count("<ins>") == page.count("<del>") == 1
    assert page.count("grader lint --fix") == 1
    plain = to_html(whole, factory.PAGES)
    assert "<ins>" not in plain
    assert "grader lint --fix" not in plain
