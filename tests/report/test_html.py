"""The HTML report as a parser sees it: self-contained, well formed, complete, and deaf to what learners write."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from grader.model.finding import EvidenceKind
from grader.model.grade import CheckResult, State, Verdict
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from tests.report import factory
from tests.report.document import Document

_ATTEMPTS = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile")


@pytest.fixture(scope="module")
def reports() -> dict[str, str]:
    return {name: to_html(getattr(factory, name)(), factory.PAGES) for name in _ATTEMPTS}


def document(reports: dict[str, str], name: str) -> Document:
    return Document(reports[name])


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_the_file_is_well_formed_and_every_link_leads_somewhere(reports: dict[str, str], name: str) -> None:
    doc = document(reports, name)
    assert not doc.unbalanced
    ids = [e.attributes["id"] for e in doc.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    targets = [e.attributes["href"] for e in doc.all("a") if e.attributes["href"].startswith("#")]
    labels = [e.attributes[a] for e in doc.elements for a in ("aria-labelledby",) if a in e.attributes]
    used = {t[1:] for t in targets} | {part for label in labels for part in label.split()}
    used |= set(re.findall(r"url\(#([^)]+)\)", reports[name]))
    used |= {e.attributes["xlink:href"][1:] for e in doc.elements if "xlink:href" in e.attributes}
    assert used <= set(ids)


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_the_file_needs_nothing_and_runs_nothing(reports: dict[str, str], name: str) -> None:
    doc = document(reports, name)
    assert {e.tag for e in doc.elements} & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "form",
        "input",
    } == set()
    assert not [a for e in doc.elements for a in e.attributes if a.startswith("on") or a in ("src", "srcset")]
    assert not re.search(r"@import|@font-face|url\((?!#)", reports[name])
    outward = [e.attributes["href"] for e in doc.all("a") if not e.attributes["href"].startswith("#")]
    assert all(re.match(r"https://[\w./-]+$", link) for link in outward)
    (policy,) = [e for e in doc.all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy.attributes["content"]
    assert len(doc.all("style")) == 1


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_headings_and_landmarks_guide_through_the_page(reports: dict[str, str], name: str) -> None:
    doc = document(reports, name)
    assert [len(doc.all(tag)) for tag in ("h1", "main", "nav")] == [1, 1, 1]
    levels = [int(e.tag[1]) for e in doc.elements if re.fullmatch("h[1-6]", e.tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(e.attributes.get("scope") in ("row", "col") for e in doc.all("th"))
    for svg in doc.all("svg"):
        assert svg.attributes.get("role") == "img"
        assert "aria-label" in svg.attributes or "aria-labelledby" in svg.attributes


def test_the_same_attempt_gives_the_same_bytes(reports: dict[str, str]) -> None:
    assert to_html(factory.rejected(), factory.PAGES) == reports["rejected"]


def test_the_head_says_the_outcome_the_points_and_the_next_step(reports: dict[str, str]) -> None:
    doc = document(reports, "rejected")
    assert doc.all("h1")[0].text == "Not accepted yet: 45 of 100"
    (ring,) = doc.all("svg", class_="ring")
    assert ring.attributes["aria-label"] == "45 of 100 points"
    (step,) = doc.all("p", class_="next")
    assert step.text == "Start with DATA001 at train.py:23, the first card below."
    (step,) = document(reports, "crashed").all("p", class_="next")
    assert step.text == "Start at train.py:32: what happened there is explained first."


def test_an_accepted_attempt_says_whether_what_stands_below_costs_points() -> None:
    whole = factory.rejected()
    passed = replace(whole, grade=replace(whole.grade, verdict=Verdict.ACCEPTED))
    (step,) = Document(to_html(passed, factory.PAGES)).all("p", class_="next")
    assert step.text == "There is nothing that you must change. What costs points stands below."


def test_a_finding_is_quoted_explained_and_linked_to_its_line(reports: dict[str, str]) -> None:
    doc = document(reports, "rejected")
    first, second, third = doc.all("article")
    assert [e.attributes["id"] for e in (first, second, third)] == ["finding-1", "finding-2", "finding-3"]
    assert "drew the same 1,437 indices" in first.text
    assert "sampler = DistributedSampler(train_set)" in first.text
    assert "−25 of 25 points for “Every sample goes to exactly one rank”" in first.text
    assert "Recorded inside your script's own processes" in first.text
    assert "shared indices" in first.text
    assert "With k ranks, k processes do the same work" in first.text
    hits = [e.text for e in doc.all("li", class_="hit") if e.inside("article")]
    assert "23▸train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)" in hits


def test_the_source_carries_its_findings_in_the_margin(reports: dict[str, str]) -> None:
    doc = document(reports, "rejected")
    line = doc.by_id("line-0-23")
    assert line.text.startswith("23    train_loader = DataLoader(")
    assert line.text.endswith("DATA001")
    (mark,) = [a for a in doc.all("a", href="#finding-1") if a.text == "DATA001" and "23" in line.text][:1]
    assert mark.attributes["aria-label"] == "finding 1, DATA001"
    shown = [e.text for e in doc.all("li") if e.attributes.get("id", "").startswith("line-0-")]
    assert len(shown) == len(factory.SOURCE.splitlines())


def test_a_deadlock_names_file_line_and_collective_of_every_rank(reports: dict[str, str]) -> None:
    doc = document(reports, "deadlocked")
    rows = [e.text for e in doc.all("tr") if "destroy_process_group" in e.text or "barrier" in e.text]
    assert re.search(r"rank 0\s*barrier\s*train\.py:39 in main\s*dist\.barrier\(\)", rows[0])
    assert re.search(
        r"rank 1\s*destroy_process_group\s*train\.py:41 in main\s*dist\.destroy_process", rows[1]
    )


@pytest.mark.parametrize("name", ["crashed", "deadlocked"])
def test_what_happened_is_explained_before_anything_else(reports: dict[str, str], name: str) -> None:
    doc = document(reports, name)
    grade = getattr(factory, name)().grade
    first = doc.all("article")[0]
    assert first.attributes["id"] == "diagnosis"
    assert grade.diagnosis.title in first.text
    if name == "deadlocked":
        assert "What to write instead stands at DIST009, below." in first.text
        assert first.text.count("Write instead") == 0
    else:
        assert grade.diagnosis.hint.replace("`", "") in first.text
    place = grade.diagnosis.where[0]
    assert f"{place.path}:{place.line}" in first.text
    assert "what happened" in doc.by_id(f"line-0-{place.line}").text
    tables = [e for e in doc.elements if e.attributes.get("id") in ("waits", "failures")]
    assert len(tables) == 1, "the raw story stays on the page"


def test_what_the_rest_builds_on_is_to_be_mended_first() -> None:
    attempt = factory.rejected()
    first, *rest = attempt.grade.findings
    shuffled = (
        first,
        replace(first, code="IO001"),
        replace(first, code="DIST001"),
        replace(first, code="GRAD001"),
    )
    html = to_html(replace(attempt, grade=replace(attempt.grade, findings=(*shuffled, *rest))), factory.PAGES)
    codes = [e.text for e in Document(html).all("span", class_="rule") if e.inside("article")]
    assert codes[:4] == ["DIST001", "GRAD001", "DATA001", "IO001"]


def test_what_was_right_is_grouped_and_what_was_only_read_is_folded() -> None:
    checks = (
        CheckResult("DATA003", State.VERIFIED, (EvidenceKind.TRACE,), "No sample went to two ranks."),
        CheckResult("GRAD013", State.VERIFIED, (EvidenceKind.SOURCE,), "Nothing in the source says so."),
        CheckResult(
            "DIST001",
            State.VERIFIED,
            (EvidenceKind.TRACE, EvidenceKind.SOURCE),
            "All 2 ranks joined a group.",
        ),
    )
    attempt = factory.accepted()
    html = to_html(
        replace(attempt, grade=replace(attempt.grade, checks=checks)), {"GRAD013": "Clipping too early.\n"}
    )
    doc = Document(html)
    assert html.index('<section id="points"') < html.index('<section id="right"')
    section = html[html.index('<section id="right"') : html.index('<section id="code"')]
    lines = [e.text.strip() for e in doc.all("summary")]
    for family in ("Process group and launch", "Gradients and replicas", "Who trains on which sample"):
        assert f"✔ {family}: 1 check" in lines
    assert "3 checks verified" in html
    assert "Looked for in the text and not found: Clipping too early" in section
    assert "Nothing in the source says so" not in section


def test_staff_and_learners_read_the_same_number_of_checks() -> None:
    secret = CheckResult("TRUST002", State.VERIFIED, (EvidenceKind.OUTSIDE,), "Nobody reached for the judge.")
    attempt = factory.accepted()
    attempt = replace(attempt, grade=replace(attempt.grade, checks=(*attempt.grade.checks, secret)))
    (mine,) = Document(to_html(attempt, {})).all("p", class_="tally")
    (theirs,) = Document(to_html(attempt, {}, Audience.STAFF)).all("p", class_="tally")
    num = sum(check.state is State.VERIFIED for check in attempt.grade.checks) - 1
    assert f"{num} checks verified" in mine.text
    assert "staff" not in mine.text
    assert f"{num} checks verified (and 1 that only staff see)" in theirs.text


@pytest.mark.parametrize("name", ["accepted", "rejected"])
def test_head_and_contents_call_the_findings_what_their_section_calls_them(
    reports: dict[str, str], name: str
) -> None:
    page = reports[name]
    doc = Document(page)
    (link,) = [one.text for one in doc.all("a") if one.attributes.get("href") == "#fix"]
    assert link == doc.by_id("fix-title").text
    (tally,) = doc.all("p", class_="tally")
    shown = re.findall(r"<h3>(Must be fixed|Costs points|Good to know) \((\d+)\)</h3>", page)
    assert shown
    for heading, number in shown:
        verb = heading.lower() if number == "1" else heading.lower().replace("costs", "cost")
        assert f"{number} {verb}" in tally.text


def test_a_crash_shows_exception_line_and_the_rest_of_the_ranks(reports: dict[str, str]) -> None:
    doc = document(reports, "crashed")
    assert "mat1 and mat2 shapes cannot be multiplied (64x784 and 785x128)" in doc.by_id("failures").text
    assert "loss = nn.functional.cross_entropy(model(images), labels)" in doc.by_id("failures").text
    assert "stopped by the judge" in doc.by_id("run").text
    assert "Not drawn: the probe saw no training steps." in doc.by_id("plots").text


def test_a_file_that_does_not_parse_is_shown_with_its_one_finding(reports: dict[str, str]) -> None:
    doc = document(reports, "does_not_parse")
    assert len(doc.all("article")) == 1
    assert "for epoch in range(EPOCHS)" in doc.by_id("line-0-30").text
    assert not doc.all("svg", class_="plot")


def test_points_states_and_reasons_of_every_item(reports: dict[str, str]) -> None:
    text = re.sub(r"\s+", " ", document(reports, "rejected").by_id("points").text)
    assert "The script runs to its end on every rank must ✔ earned" in text
    assert "Every sample goes to exactly one rank must ✘ lost DATA001 was found." in text
    assert "Each rank uses its own device – cannot be shown here There are no GPUs in this profile." in text
    assert "left out" in text


def test_what_was_right_is_told_too(reports: dict[str, str]) -> None:
    text = document(reports, "rejected").by_id("right").text
    assert "Gradients were equal to the bit in 24 of 24 sampled steps." in text
    assert "1 check could not be observed" in text


def test_hostile_text_is_shown_and_never_interpreted(reports: dict[str, str]) -> None:
    doc = document(reports, "hostile")
    page = doc.all("html")[0].text
    assert page.count("<script>document.title='owned'</script>") > 20
    assert "␛[2J" in page
    assert "‹U+202E›gnp.exe" in page
    assert "{{ 7*7 }}" in page
    assert "49 }}" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", reports["hostile"])


def test_learners_see_neither_review_findings_nor_accusations(reports: dict[str, str]) -> None:
    assert "TRUST" not in reports["rejected"]
    assert "TRUST002" in to_html(factory.rejected(), {}, Audience.STAFF)
    check = CheckResult("TRUST002", State.CONTRADICTED, (EvidenceKind.OUTSIDE,), "Forged.")
    held = factory.grade(
        Verdict.HELD, verdict_reason="Forged.", checks=(check,), findings=(factory.TRUST002,)
    )
    held = replace(held, review=("TRUST002: Forged in detail.",))
    crashed = factory.crashed()
    page = to_html(factory.attempt(task=crashed.task, submission=crashed.submission, grade=held), {})
    assert "Held for review" in page
    assert "Forged" not in page
    assert "TRUST" not in page
    staff = to_html(
        factory.attempt(task=crashed.task, submission=crashed.submission, grade=held), {}, Audience.STAFF
    )
    assert "Forged in detail." in staff


def test_long_logs_and_long_lines_are_shortened_where_it_says_so() -> None:
    lines = "".join(f"line {number}\n" for number in range(5000)) + "x" * 10_000
    page = to_html(factory.with_evidence(factory.crashed(), logs=((lines, ""), ("", ""))), {})
    text = Document(page).by_id("output").text
    assert "rank 0, standard output (5,001 lines)" in text
    assert "line 99\n… 4,601 lines left out …\nline 4701\n" in text
    assert "… (line cut)" in text
    assert len(page) < 100_000


def test_several_files_are_all_listed_and_those_with_findings_are_open() -> None:
    files = (
        SourceFile("data.py", "a = 1\n"),
        SourceFile("net.py", "b = 2\n"),
        SourceFile("train.py", "c = 3\n"),
    )
    finding = replace(
        factory.DATA001, where=(replace(factory.DATA001.where[0], path="net.py", line=1, end_line=1),)
    )
    attempt = factory.attempt(
        task=factory.task(), submission=Submission("many", files), grade=factory.grade(findings=(finding,))
    )
    doc = Document(to_html(attempt, {}))
    listed = [e for e in doc.all("details", class_="panel") if e.inside("section")]
    assert [("open" in e.attributes) for e in listed] == [False, True, True]
    assert doc.by_id("line-1-1").text.endswith("DATA001")


def test_without_pages_given_the_rules_own_pages_are_used() -> None:
    page = to_html(replace(factory.does_not_parse(), grade=factory.grade(findings=(factory.DATA001,))))
    assert "Data-parallel training divides each epoch" in page
