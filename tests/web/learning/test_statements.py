"""Statements as pages: what authors write comes out as meant, and nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.report.html.markdown_html import statement_html
from grader.web import templating
from tests.web.conftest import School

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", find_tasks())
def test_every_statement_is_a_page(school: School, name: str) -> None:
    html = str(statement_html(load_task(name).statement, "/figures", "/rules"))
    assert "<h1" not in html
    assert " style=" not in html, "our own policy refuses inline styles"
    assert "<em>" not in html or 'src=""' not in html
    folder = load_task(name).folder / "figures"
    for part in html.split('<img src="/figures/')[1:]:
        assert (folder / part.split('"')[0]).is_file()


def test_codes_lead_to_their_pages_and_figures_to_the_tasks_own() -> None:
    html = str(
        statement_html("# T\n\n`DATA001` and `x = 1`\n\n![A curve](figures/curve.svg)\n", "/here", "/rules")
    )
    assert '<a href="/rules/DATA001"><code>DATA001</code></a>' in html
    assert "<code>x = 1</code>" in html
    assert '<img src="/here/curve.svg" alt="A curve" loading="lazy">' in html
    assert "T" not in html.split("<p>", maxsplit=1)[0]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](https://evil.example/pixel.png)",
        "![x](../../etc/passwd)",
        "![x](figures/../evaluate.py)",
        "`</code><script>alert(1)</script>`",
        "```python\n</code></pre><script>alert(1)</script>\n```",
        "| a |\n|---|\n| <script>alert(1)</script> |",
        "\u202egnp.exe \x1b[31m",
    ],
)
def test_nothing_in_a_statement_acts(text: str) -> None:
    html = str(statement_html(text, "/here", "/rules"))
    for acting in (
        "<script",
        "<img src=x",
        'href="javascript',
        'href="data:',
        'evil.example/pixel.png"',
        "../",
        "\x1b",
    ):
        assert acting not in html
    assert "\u202e" not in html


@given(st.text(max_size=300))
def test_any_text_is_a_page(text: str) -> None:
    html = str(statement_html(text))
    assert "<script" not in html.lower()
    assert "\x00" not in html


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (timedelta(seconds=-20), "just now"),
        (timedelta(seconds=20), "in less than a minute"),
        (timedelta(minutes=-1), "1 minute ago"),
        (timedelta(minutes=59), "in 59 minutes"),
        (timedelta(hours=1), "in 1 hour"),
        (timedelta(minutes=-118), "1 hour 58 minutes ago"),
        (timedelta(hours=-47), "47 hours ago"),
        (timedelta(days=2), "in 2 days"),
        (timedelta(days=-400), "400 days ago"),
    ],
)
def test_times_are_told_as_people_tell_them(gap: timedelta, said: str) -> None:
    assert templating.relative(NOW + gap, NOW) == said


def test_assets_are_kept_for_good_under_an_address_of_their_own(school: School) -> None:
    browser = school.client()
    address = templating.static_path("site.css")
    answer = browser.get(address)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "--accent" in answer.text, "the colours of reports are those of the site"
    digest = address.split("/")[2]
    for wrong in (
        f"/static/{digest}/site.js",
        "/static/000000000000/site.css",
        f"/static/{digest}/..%2fsite.py",
    ):
        assert browser.get(wrong).status_code == 404


def test_the_list_says_what_to_do_first(school: School) -> None:
    from grader.catalog.courses.course_file import load_course
    from grader.store.courses import courses, enrolments
    from grader.store.courses.course_import import import_course

    planned = load_course()
    made = import_course(school.store, school.files, planned, begins_at=NOW)
    enrolments.enrol(school.store, made, school.people["anna"])
    text = school.client("anna").get(f"/courses/{made}").text
    assert planned.about.split(",")[0] in text
    advised = next(item for item in planned.items if item.after)
    title = next(
        one.terms.title for one in courses.tasks_of(school.store, made) if one.task == advised.after[0]
    )
    assert f"best after {title}" in text
