"""Markdown that rule pages and messages are written in: what becomes of it, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.checks.diagnosis import load_explanations
from grader.checks.rule import load_rules
from grader.report.html.markdown_html import inline_html, page_html
from tests.report.document import Document

BLOCKS = {
    "h4",
    "h5",
    "h6",
    "p",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
}
INLINE = {"code", "strong", "em", "a"}


def page(text: str) -> str:
    return str(page_html(text, top=4))


def test_headings_paragraphs_lists_and_code() -> None:
    html = page(
        "## What it finds\nA loader\nwithout a sampler.\n\n- one `x = 1`\n  and more\n- **two**\n\n"
        "```python\nfor a in b:\n    c < d\n```\n\n    indented & kept\n"
    )
    document = Document(html)
    assert html.split("\n<", 1)[0] == "<h4>What it finds</h4>"
    assert [" ".join(e.text.split()) for e in document.all("p")] == ["A loader without a sampler."]
    assert [" ".join(e.text.split()) for e in document.all("li")] == ["one x = 1 and more", "two"]
    assert all(e.inside("ul") for e in document.all("li"))
    assert "<code>x = 1</code>" in html
    assert "<strong>two</strong>" in html
    assert [e.text for e in document.all("pre")] == ["for a in b:\n    c < d", "indented & kept"]
    assert '<span class="k">for</span> a <span class="k">in</span> b:\n    c &lt; d</code>' in html
    assert "<code>indented &amp; kept</code>" in html


def test_ordered_lists_keep_their_numbers() -> None:
    document = Document(page("Do this:\n\n3. first\n4. second\n   - a detail\n5. third\n"))
    (ordered,) = document.all("ol")
    assert ordered.attributes["start"] == "3"
    items = [e for e in document.all("li") if e.parent is ordered]
    assert [item.text.split()[0] for item in items] == ["first", "second", "third"]
    (detail,) = [e for e in document.all("li") if e.inside("ul")]
    assert detail.inside("ol")


def test_tables_are_tables_that_scroll_by_themselves() -> None:
    html = page("| ranks | seconds |\n|---|--:|\n| 2 | **4.5** |\n| `8` | 1 \\| 2 |\n")
    document = Document(html)
    assert [e.text for e in document.all("th")] == ["ranks", "seconds"]
    assert [e.text for e in document.all("td")] == ["2", "4.5", "8", "1 | 2"]
    assert [e.attributes.get("class") for e in document.all("td")] == [None, "num", None, "num"]
    (frame,) = document.all("div", class_="scroll")
    assert frame.attributes["tabindex"] == "0"
    assert " style=" not in html


def test_a_table_without_names_of_columns_has_names_of_rows() -> None:
    document = Document(page("| | |\n|---|--:|\n| started as | `torchrun` |\n| seconds | 2 |\n"))
    assert [(e.text, e.attributes.get("scope")) for e in document.all("th")] == [
        ("started as", "row"),
        ("seconds", "row"),
    ]
    assert [e.text for e in document.all("td")] == ["torchrun", "2"]
    assert not document.all("thead")


@pytest.mark.parametrize(
    "text", ["Use instead\n-----------\ntext", "## Use instead\ntext", "# Use instead\ntext"]
)
def test_all_ways_to_write_a_heading(text: str) -> None:
    assert page(text).startswith("<h4>Use instead</h4>")


def test_headings_stand_below_the_one_that_they_belong_to() -> None:
    assert page("## A\n\n### B\n\n###### C\n").count("<h") == 3
    assert [e.tag for e in Document(page("## A\n\n### B\n\n###### C\n")).elements] == ["h4", "h5", "h6"]
    assert [e.tag for e in Document(str(page_html("## A\n\n### B\n", top=2))).elements] == ["h2", "h3"]


@pytest.mark.parametrize("render", [inline_html, page])
def test_only_links_to_web_pages_become_links(render: object) -> None:
    assert callable(render)
    assert '<a href="https://pytorch.org/docs" rel="noreferrer noopener">' in render(
        "see [docs](https://pytorch.org/docs)"
    )
    for url in (
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "data:image/png;base64,AAAA",
        "file:///etc/passwd",
        "mailto:a@b.example",
        "../evaluate.py",
        "//evil.example",
        'https://x" onclick="y',
    ):
        assert "<a " not in render(f"[docs]({url})"), url
        assert "<img" not in render(f"![docs]({url})"), url
    assert "<a " not in render("<javascript:alert(1)>")
    assert "<a " not in render("[a]\n\n[a]: javascript:alert(1)")


def test_html_is_text() -> None:
    assert inline_html("<script>`<b>`</script>") == "&lt;script&gt;<code>&lt;b&gt;</code>&lt;/script&gt;"
    html = page("<script>alert(1)</script>\n\n<b onclick=x>bold</b>\n\n```html\n<i>\n```\n")
    assert {e.tag for e in Document(html).elements} == {"p", "pre", "code"}


def test_names_with_underscores_and_stars_stay_whole_in_messages() -> None:
    for text in (
        "my_var_name and 2 * 3 * 4 and **kwargs",
        "call(*args, **kwargs)",
        "world_size*batch*2",
        "__init__ of _Model_ and a\\*b",
        "~~x~~ &copy; 1. one",
        "two\n  lines  \nand a third",
    ):
        assert inline_html(text) == text.replace("&", "&amp;"), text


def test_messages_set_code_and_weight_apart() -> None:
    assert inline_html("``a ` b`` is **not** *that* `x`") == (
        "<code>a ` b</code> is <strong>not</strong> <em>that</em> <code>x</code>"
    )


@given(st.text(st.sampled_from("`*#-[]() \n~=+_.|:1<>&\"'\\ahttps:/"), max_size=80))
def test_any_text_gives_balanced_html(text: str) -> None:
    for html in (page(text), str(inline_html(text))):
        document = Document(html)
        assert not document.unbalanced
        assert {e.tag for e in document.elements} <= BLOCKS | INLINE | {"td", "pre", "br"}
    assert {e.tag for e in Document(str(inline_html(text))).elements} <= INLINE


def test_the_page_of_every_rule_and_diagnosis_is_rendered_with_its_sections() -> None:
    for rule in load_rules():
        document = Document(page(rule.page))
        headings = [e.text for e in document.all("h4")]
        assert "What it finds" in headings, rule.code
        assert "```" not in "".join(e.text for e in document.elements), rule.code
    for explanation in load_explanations():
        document = Document(page(explanation.page))
        assert document.all("h4"), explanation.id
        assert not document.unbalanced
