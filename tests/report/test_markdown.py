"""Markdown summaries: what a CI job's page shows of an attempt and of a verification."""

from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt

from grader.model.grade import Verdict
from grader.model.verify_case import VerifyCase
from grader.report.audience import Audience
from grader.report.exports import markdown
from tests.report import factory

# A renderer of GitHub's tables that would pass HTML through, as a careless viewer does.
RENDER = MarkdownIt("commonmark", {"html": True}).enable("table")

_KEPT = VerifyCase("ddp-fashion", "accepted/a_b.py", "accepted", "accepted", (), (), 4.25, "", ok=True)
_CACHED = replace(_KEPT, submission="accepted/known.py", cached=True, seconds=0.0)
_BROKEN = VerifyCase(
    "ddp-fashion", "rejected/b.py", "rejected", "accepted", ("DATA001",), (), 3.5,
    "verdict accepted, not `rejected`", ok=False,
)  # fmt: skip


def test_an_attempt_has_verdict_points_and_what_to_mend() -> None:
    text = markdown.of_grade(factory.rejected().grade, Audience.LEARNER)
    page = RENDER.render(text)
    assert text.startswith("## ✘ Not accepted yet: 45 of 100\n")
    assert "<td>Every sample goes to exactly one rank (must)</td>\n<td>lost</td>\n<td>0 / 25</td>" in page
    assert "<strong>DATA001</strong> <code>train.py:23</code>, ranks 0 and 1" in page
    assert text.index("Must be fixed") < text.index("Costs points") < text.index("Good to know")
    assert "TRUST" not in text


def test_staff_see_why_an_attempt_is_held_and_learners_do_not() -> None:
    held = factory.grade(
        Verdict.HELD, verdict_reason="Forged.", findings=(factory.TRUST002,), review=("TRUST002: Forged.",)
    )
    assert "orged" not in markdown.of_grade(held, Audience.LEARNER)
    assert "TRUST" not in markdown.of_grade(held, Audience.LEARNER)
    assert "Held because: TRUST002: Forged." in markdown.of_grade(held, Audience.STAFF)


def test_a_verification_tells_broken_promises_first() -> None:
    text = markdown.of_verification([_KEPT, _CACHED, _BROKEN])
    page = RENDER.render(text)
    assert text.startswith("## ✘ Tasks: 2 of 3 promises kept\n")
    assert (
        "<li><strong>ddp-fashion/rejected/b.py</strong>: verdict accepted, not <code>rejected</code></li>"
        in page
    )
    assert page.index("rejected/b.py</td>") < page.index("accepted/a_b.py</td>")
    assert "<td>cached</td>" in page
    assert "1 of them" in page


def test_all_kept_and_nothing_to_do() -> None:
    assert markdown.of_verification([_KEPT]).startswith("## ✔ Tasks: 1 of 1 promise kept\n")
    assert "nothing to verify" in markdown.of_verification([])


def test_what_a_script_wrote_is_shown_and_never_rendered() -> None:
    evil = "<script>alert(1)</script> [x](http://e) ![i](http://e) | **b** `c|d` # h\n## top\n| a |"
    grade = replace(
        factory.hostile().grade,
        verdict_reason=evil,
        submission=evil,
        findings=(replace(factory.DATA001, message=evil, hint=evil),),
        rubric=tuple(replace(item, title=evil, reason=evil) for item in factory.rubric()),
        notes=(evil,),
    )
    case = replace(_BROKEN, submission=evil, message=evil)
    num_columns = {3, 6}
    for text in (markdown.of_grade(grade, Audience.LEARNER), markdown.of_verification([case])):
        page = RENDER.render(text)
        for tag in ("<script", "<a ", "<img", "<h1"):
            assert tag not in page
        assert page.count("<h2>") == 1
        assert "&lt;script&gt;" in page
        rows = [row for row in page.split("<tr>") if "<td>" in row]
        assert rows
        assert {row.count("<td>") for row in rows} <= num_columns
