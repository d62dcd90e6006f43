"""The small part of Markdown that rule pages use, and what it refuses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grader.checks.rule import load_rules
from grader.report.prose import inline, page
from tests.report.document import Document


def test_headings_paragraphs_lists_and_code() -> None:
    html = page(
        "## What it finds\nA loader\nwithout a sampler.\n\n- one `x = 1`\n  and more\n- **two**\n\n"
        "```python\nfor a in b:\n    c < d\n```\n\n    indented & kept\n"
    )
    assert str(html).split("\n<", 1)[0] == "<h4>What it finds</h4>"
    assert "<p>A loader without a sampler.</p>" in html
    assert "<ul><li>one <code>x = 1</code> and more</li><li><strong>two</strong></li></ul>" in html
    assert "<code>for a in b:\n    c &lt; d</code>" in html
    assert "<code>indented &amp; kept</code>" in html


def test_all_ways_to_write_a_heading() -> None:
    assert str(page("Use instead\n-----------\ntext")).startswith("<h4>Use instead</h4>")
    assert str(page("*Use instead*\n\ntext")).startswith("<h4>Use instead</h4>")
    assert str(page("### Use instead\ntext")).startswith("<h4>Use instead</h4>")


def test_only_links_to_web_pages_become_links() -> None:
    assert '<a href="https://pytorch.org/docs" rel=' in inline("see [docs](https://pytorch.org/docs)")
    for url in ("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", 'https://x" onclick="y'):
        assert "<a " not in inline(f"[docs]({url})")


def test_html_is_text() -> None:
    assert inline("<script>`<b>`</script>") == "&lt;script&gt;<code>&lt;b&gt;</code>&lt;/script&gt;"


def test_names_with_underscores_and_stars_stay_whole() -> None:
    assert inline("my_var_name and 2 * 3 * 4 and **kwargs") == "my_var_name and 2 * 3 * 4 and **kwargs"


@given(st.text(st.sampled_from("`*#-[]() \n~=+_.<>&\"'ahttps:/"), max_size=60))
def test_any_text_gives_balanced_html(text: str) -> None:
    document = Document(str(page(text)) + str(inline(text)))
    assert not document.unbalanced
    assert {e.tag for e in document.elements} <= {"h4", "p", "ul", "li", "pre", "code", "strong", "em", "a"}


def test_the_page_of_every_rule_is_rendered_with_its_sections() -> None:
    for rule in load_rules():
        document = Document(str(page(rule.page)))
        headings = [e.text for e in document.all("h4")]
        assert "What it finds" in headings, rule.code
        assert "```" not in "".join(e.text for e in document.elements), rule.code
