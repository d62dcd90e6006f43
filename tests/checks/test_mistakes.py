"""The catalogue of mistakes is true: what it names exists and flags what it says, and nothing grave is left open."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task
from grader.checks.mistakes import Mistake, load_mistakes
from grader.checks.rule import load_rules
from grader.model.promise import PromisedSubmission

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "checks" / "fixtures"
CODES = {rule.code for rule in load_rules()}


@cache
def promises(task: str) -> dict[str, PromisedSubmission]:
    return {promised.name: promised for promised in submissions_of(load_task(task))}


def test_every_number_is_there_once() -> None:
    assert [m.number for m in load_mistakes()] == list(range(1, len(load_mistakes()) + 1))
    assert len(load_mistakes()) >= 99
    assert len({m.name for m in load_mistakes()}) == len(load_mistakes())


@pytest.mark.parametrize("mistake", load_mistakes(), ids=lambda m: f"{m.number}-{m.name}")
def test_it_is_covered_and_proved_or_named_as_out_of_reach(mistake: Mistake) -> None:
    assert set(mistake.severity.split("/")) <= {"critical", "moderate", "minor", "info"}
    assert set(mistake.codes) <= CODES
    seen = mistake.codes or mistake.diagnoses
    assert bool(seen) != bool(mistake.out_of_reach), "covered, or out of reach with its reason"
    if seen and mistake.severity not in ("minor", "info"):
        assert mistake.fixtures or mistake.submissions or mistake.tests, "something proves it"
    for name in mistake.diagnoses:
        assert (ROOT / "grader" / "checks" / "diagnoses" / f"{name}.py").is_file()


@pytest.mark.parametrize("mistake", load_mistakes(), ids=lambda m: f"{m.number}-{m.name}")
def test_what_proves_it_exists_and_shows_it(mistake: Mistake) -> None:
    for fixture in mistake.fixtures:
        code, _, name = fixture.partition("/")
        assert code in mistake.codes
        assert name.startswith("flagged_")
        assert (FIXTURES / f"{fixture}.py").is_file()
    for submission in mistake.submissions:
        task, _, name = submission.partition("/")
        assert name in promises(task)
        assert set(promises(task)[name].codes) & set(mistake.codes) or mistake.diagnoses
    for test in mistake.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")
