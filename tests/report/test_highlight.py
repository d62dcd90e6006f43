"""Scripts with colours: the text stays what it was, line by line, and nothing in it acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.html.highlight import highlighted
from grader.report.safe_text import visible
from tests.report.document import Document


def test_comments_strings_numbers_and_keywords_have_colours() -> None:
    html = highlighted(["async def f(x):  # why", "    return 0x1f", "    '''two", "lines'''"])
    assert [str(line) for line in html] == [
        '<span class="k">async</span> <span class="k">def</span> f(x):  <span class="c"># why</span>',
        '    <span class="k">return</span> <span class="num-lit">0x1f</span>',
        '    <span class="s">&#39;&#39;&#39;two</span>',
        '<span class="s">lines&#39;&#39;&#39;</span>',
    ]


def test_what_does_not_parse_keeps_its_colours_after_the_mistake_too() -> None:
    html = highlighted(["def f(:", "  ?$ §", "for x in", "print('open"])
    assert html[2] == '<span class="k">for</span> x <span class="k">in</span>'


@pytest.mark.parametrize("lines", [[], [""], ["", ""], ["x", "", ""], ["a\r", "b"], ["\x0c", "x\ty"]])
def test_every_line_comes_back(lines: list[str]) -> None:
    assert len(highlighted(lines)) == len(lines)


@given(
    st.lists(st.text(st.sampled_from("f'\"\\#{}()[]:= \t\rabc01_<>&é\u202e\x1b"), max_size=30), max_size=8)
)
def test_any_text_is_shown_as_it_is_and_harmless(lines: list[str]) -> None:
    html = highlighted(lines)
    assert len(html) == len(lines)
    for line, shown in zip(lines, html, strict=True):
        document = Document(f"<p>{shown}</p>")
        assert not document.unbalanced
        assert {e.tag for e in document.elements} <= {"p", "span"}
        assert document.elements[0].text == visible(line)


def test_a_huge_file_is_shown_plain() -> None:
    line, *others = highlighted(["x = 1 # <" + "y" * 1000] * 300)
    assert len(others) == 299
    assert "<span" not in line
    assert "&lt;" in line


def test_of_a_line_without_end_the_beginning_is_shown() -> None:
    long, after = highlighted(["x = '" + "y" * 300_000, "z = 1"])
    assert len(long) < 3000
    assert "y…" in long
    assert after.endswith('<span class="num-lit">1</span>')


def test_every_skeleton_reads_as_before(repository: Path) -> None:
    for path in sorted((repository / "skeletons").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").split("\n")
        shown = [Document(f"<p>{line}</p>").elements[0].text for line in highlighted(lines)]
        assert shown == lines, path
