"""Every rule: its page has all sections, its examples hold, its fixtures are flagged on exactly the marked lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.checks.lint import load_page
from grader.checks.rule import Hit, Rule, load_rules
from grader.checks.source.script import parse
from grader.model.finding import Severity
from grader.model.submission import SourceFile, Submission

FIXTURES = Path(__file__).parent / "fixtures"
SECTIONS = ["What it finds", "Why it matters", "Example", "Use instead", "How it is seen"]
RULES = load_rules()
WITH_SOURCE = [r for r in RULES if r.check_source is not None]


def hits(rule: Rule, text: str) -> list[Hit]:
    assert rule.check_source is not None
    return list(rule.check_source(parse(Submission("test", (SourceFile("train.py", text),)))))


def section(rule: Rule, name: str) -> str:
    return re.split(r"^## ", rule.page, flags=re.MULTILINE)[1 + SECTIONS.index(name)]


def code_block(rule: Rule, name: str) -> str:
    found = re.findall(r"```python\n(.*?)```", section(rule, name), flags=re.DOTALL)
    assert len(found) == 1, f"{rule.code}: one python block under {name}"
    return str(found[0])


def marked(code: str, text: str) -> set[int]:
    mark = re.compile(rf"# <- .*\b{code}\b")
    return {number for number, line in enumerate(text.splitlines(), 1) if mark.search(line)}


def fixtures(kind: str) -> list[tuple[str, Path]]:
    return [(r.code, p) for r in WITH_SOURCE for p in sorted((FIXTURES / r.code).glob(f"{kind}_*.py"))]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_pages_have_a_title_and_all_sections_in_order(rule: Rule) -> None:
    title, blank, *_ = rule.page.splitlines()
    assert title.endswith(".")
    assert title[0].isupper() or title[0] == "`"
    assert len(title) < 90
    assert blank == ""
    assert re.findall(r"^## (.*)$", rule.page, flags=re.MULTILINE) == SECTIONS
    assert rule.page.count("```") % 2 == 0
    assert load_page(rule.code.lower()) == rule.page


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_examples_are_python(rule: Rule) -> None:
    for name in ("Example", "Use instead"):
        compile(code_block(rule, name), f"{rule.code} {name}", "exec")


@pytest.mark.parametrize("rule", WITH_SOURCE, ids=lambda r: r.code)
def test_the_example_is_flagged_and_the_cure_is_not(rule: Rule) -> None:
    assert hits(rule, code_block(rule, "Example"))
    assert hits(rule, code_block(rule, "Use instead")) == []


@pytest.mark.parametrize("rule", WITH_SOURCE, ids=lambda r: r.code)
def test_rules_have_enough_fixtures_of_both_kinds(rule: Rule) -> None:
    folder = FIXTURES / rule.code
    assert len(list(folder.glob("flagged_*.py"))) >= 3
    assert len(list(folder.glob("clean_*.py"))) >= 3


@pytest.mark.parametrize(
    ("code", "path"), fixtures("flagged"), ids=lambda v: v.stem if isinstance(v, Path) else v
)
def test_flagged_on_exactly_the_marked_lines(code: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rule = next(r for r in RULES if r.code == code)
    found = hits(rule, text)
    assert {place.line for hit in found for place in hit.where} == marked(code, text) != set()
    for hit in found:
        assert "`train.py:" in hit.message, "a finding names its place"
        assert hit.hint, "a finding says what to write instead"


@pytest.mark.parametrize(
    ("code", "path"), fixtures("clean"), ids=lambda v: v.stem if isinstance(v, Path) else v
)
def test_near_misses_are_not_flagged(code: str, path: Path) -> None:
    rule = next(r for r in RULES if r.code == code)
    assert hits(rule, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted((FIXTURES / "styles").glob("*.py")), ids=lambda p: p.stem)
def test_honest_styles_pass_all_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for rule in WITH_SOURCE:
        found = hits(rule, text)
        assert {place.line for hit in found for place in hit.where} == marked(rule.code, text)
        assert all((hit.severity or rule.severity) is Severity.HINT for hit in found), "advice at most"


def test_the_rules_of_the_design_are_all_there() -> None:
    names = {f"{r.code} {r.name}" for r in RULES}
    assert names >= {
        "DIST001 missing_process_group", "DIST002 process_group_leak", "DIST003 collective_under_rank_guard",
        "DIST006 spawns_own_ranks", "DIST009 mismatched_collectives", "DEV001 device_ignores_local_rank",
        "DATA001 missing_distributed_sampler", "DATA002 missing_set_epoch", "DATA003 overlapping_shards",
        "DATA004 incomplete_coverage", "DATA005 uneven_steps", "GRAD001 unsynchronised_gradients",
        "GRAD002 bypasses_wrapper", "GRAD003 data_parallel_instead_of_ddp", "GRAD007 replicas_diverge",
        "EVAL001 unreduced_metric", "EVAL003 padded_or_dropped_validation", "EVAL007 reported_metric_contradicted",
        "IO001 every_rank_saves", "IO002 every_rank_logs", "IO003 download_race",
        "IO005 module_prefix_in_checkpoint", "TRUST002 trace_contradicted",
        "DATA006 unshuffled_training", "DATA007 rank_dependent_split", "DATA008 equal_augmentation_seeds",
        "OPT001 learning_rate_not_scaled", "OPT002 missing_warmup", "OPT003 batch_size_semantics",
        "OPT004 scheduler_steps_diverge", "PERF001 barrier_or_reduce_every_step", "PERF002 input_bound",
        "PERF003 poor_scaling",
        "EVAL002 unweighted_average_of_shards", "EVAL004 whole_validation_on_every_rank",
        "EVAL005 rank0_eval_through_wrapper", "EVAL006 missing_eval_mode", "EVAL008 misread_reduction",
        "IO004 makedirs_race", "IO006 local_rank_guard_on_shared_storage", "IO007 incomplete_resume",
        "IO008 load_before_save",
    }  # fmt: skip
