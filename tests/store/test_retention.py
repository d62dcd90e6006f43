"""Rules that delete what attempts left: what goes, what stays, and what never goes though it is due."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts.attempt_endings import StoredFile, finish
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import files_of
from grader.store.attempts.retention import (
    RetentionRule,
    delete_due,
    deleted_of,
    due_content,
    rule_of,
    rules,
    set_rule,
)
from grader.store.attempts.submissions import source_of
from grader.store.clock import database_now
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.database import Store
from grader.store.events import add_live_events, audit_of, events_of
from grader.store.files import FileMissingError, FolderFiles
from grader.store.grading import regrades, reviews
from grader.store.grading.gradebook import gradebook
from grader.store.grading.regrade_requests import ask_for_regrade, decide_request
from grader.store.tables import AttemptRow, SourceRow
from grader.store.tables.regrade_request import RequestDecision
from tests.store.campus import Campus, verdict_of

FOR_GOOD = RetentionRule()
SCRIPTS = RetentionRule(scripts_days=90)


@pytest.fixture
def files(tmp_path: Path) -> FolderFiles:
    return FolderFiles(tmp_path / "files")


def judged(
    campus: Campus,
    files: FolderFiles,
    person: int,
    text: str | None = None,
    *,
    days: float = 0,
    **grade: object,
) -> int:
    """An attempt with a log line and files, that ended so many days ago."""
    campus.queue(person, text)
    claimed = campus.claim()
    log = ("log", {"rank": 0, "stream": "stdout", "text": "printed"})
    assert add_live_events(campus.store, claimed.attempt_id, claimed.lease_token, [log])
    names = ("report.html", "report-staff.html", "grade.json", "grade-learner.json", "evidence.tar.gz")
    left = [StoredFile(name, files.put(f"{name} of {claimed.digest}".encode()), 100) for name in names]
    finish(campus.store, claimed.attempt_id, claimed.lease_token, verdict_of(**grade), left)  # type: ignore[arg-type]
    age(campus.store, claimed.attempt_id, days)
    return claimed.attempt_id


def age(store: Store, attempt_id: int, days: float) -> None:
    with store.write() as connection:
        connection.execute(
            update(AttemptRow)
            .where(AttemptRow.id == attempt_id)
            .values(finished_at=database_now(-days * 86400.0))
        )


def names(campus: Campus, attempt_id: int) -> set[str]:
    return {one.name for one in files_of(campus.store, attempt_id)}


def prints(campus: Campus, attempt_id: int) -> list[str]:
    return [one.data["text"] for one in events_of(campus.store, attempt_id) if one.kind == "log"]


def test_evidence_goes_after_its_days_and_grades_reports_and_scripts_stay(
    campus: Campus, files: FolderFiles
) -> None:
    old = judged(campus, files, campus.anna, days=31)
    new = judged(campus, files, campus.ben, days=29)
    evidence = next(one.digest for one in files_of(campus.store, old) if one.name == "evidence.tar.gz")
    site = RetentionRule(evidence_days=30)
    assert due_content(campus.store, campus.course, site).num_evidence == 1
    before = gradebook(campus.store, campus.course).rows
    assert delete_due(campus.store, files, site) == 1
    assert names(campus, old) == names(campus, new) - {"evidence.tar.gz"}
    with pytest.raises(FileMissingError):
        files.get(evidence)
    assert prints(campus, old) == [""]
    assert [one.seq for one in events_of(campus.store, old)] == list(range(1, 5)), "numbers have no gaps"
    assert prints(campus, new) == ["printed"]
    assert source_of(campus.store, old) is not None
    assert gradebook(campus.store, campus.course).rows == before
    assert deleted_of(campus.store, old).evidence_at is not None
    assert deleted_of(campus.store, new).evidence_at is None
    assert delete_due(campus.store, files, site) == 0, "nothing is deleted twice"
    (event,) = audit_of(campus.store, f"course:{campus.course}", kind="evidence_deleted")
    assert event.data == {"number": 1}


def test_scripts_go_with_reports_and_evidence_and_what_counts_stays(
    campus: Campus, files: FolderFiles
) -> None:
    old = judged(campus, files, campus.anna, days=91, points=77.0)
    delete_due(campus.store, files, SCRIPTS)
    assert names(campus, old) == {"grade.json", "grade-learner.json"}
    assert source_of(campus.store, old) is None
    with campus.store.read() as connection:
        assert connection.execute(select(SourceRow.files)).scalar_one() == []
    assert results_of(campus.store, [old])[old].points == 77.0
    with pytest.raises(UsageError, match="still has its scripts"):
        regrades.queue_new_runs(campus.store, [old], actor_id=campus.ines)
    reviews.override(campus.store, old, Verdict.ACCEPTED, 90.0, "seen then", actor_id=campus.ines)
    assert results_of(campus.store, [old])[old].points == 90.0


def test_the_same_script_of_somebody_else_stays_until_it_is_due_too(
    campus: Campus, files: FolderFiles
) -> None:
    text = "print('shared')\n"
    first = judged(campus, files, campus.anna, text, days=91)
    # Answered at once from the first, so it has the very same files.
    second = campus.queue(campus.ben, text)
    report = next(one.digest for one in files_of(campus.store, second) if one.name == "report.html")
    assert delete_due(campus.store, files, SCRIPTS)
    assert source_of(campus.store, first) is None
    kept = source_of(campus.store, second)
    assert kept is not None
    assert kept.files[0].text == text
    assert files.get(report)
    age(campus.store, second, 91)
    assert delete_due(campus.store, files, SCRIPTS)
    assert source_of(campus.store, second) is None
    with pytest.raises(FileMissingError):
        files.get(report)


def test_what_was_deleted_and_comes_again_is_kept_and_judged_anew(campus: Campus, files: FolderFiles) -> None:
    text = "print('again')\n"
    judged(campus, files, campus.anna, text, days=91)
    delete_due(campus.store, files, SCRIPTS)
    again = campus.queue(campus.anna, text)
    source = source_of(campus.store, again)
    assert source is not None
    assert source.files[0].text == text
    assert campus.claim().attempt_id == again, "no answer from an attempt without files"


def test_what_waits_for_somebody_stays(campus: Campus, files: FolderFiles) -> None:
    held = judged(campus, files, campus.anna, days=400, verdict=Verdict.HELD)
    again = judged(campus, files, campus.ben, days=400)
    regrades.queue_new_runs(campus.store, [again], actor_id=campus.ines)
    running = campus.queue(campus.anna)
    assert delete_due(campus.store, files, SCRIPTS) == 0
    assert all(source_of(campus.store, one) is not None for one in (held, again, running))
    reviews.override(campus.store, held, Verdict.REJECTED, 0.0, "no", actor_id=campus.ines)
    delete_due(campus.store, files, SCRIPTS)
    assert source_of(campus.store, held) is None


def test_what_a_learner_asked_to_be_looked_at_stays_until_that_is_decided(
    campus: Campus, files: FolderFiles
) -> None:
    rules = GradingRules(regrade_days=365)
    set_grading_rules(campus.store, campus.course, rules, actor_id=campus.ines)
    first = judged(campus, files, campus.anna, days=400)
    batch = regrades.queue_new_runs(campus.store, [first], actor_id=campus.ines)
    again = campus.claim()
    finish(campus.store, again.attempt_id, again.lease_token, verdict_of())
    regrades.apply(campus.store, batch, actor_id=campus.ines)
    age(campus.store, again.attempt_id, 400)
    asked = ask_for_regrade(campus.store, again.attempt_id, "Look again", person_id=campus.anna)
    assert delete_due(campus.store, files, SCRIPTS) == 0
    assert due_content(campus.store, campus.course, SCRIPTS).num_scripts == 0
    decide_request(campus.store, asked, RequestDecision.KEPT, "It holds.", actor_id=campus.ines)
    assert delete_due(campus.store, files, SCRIPTS)
    assert source_of(campus.store, first) is None


@pytest.mark.one_database
def test_a_course_may_keep_things_for_less_than_the_site_and_never_longer(campus: Campus) -> None:
    site = RetentionRule(evidence_days=30, scripts_days=365)
    set_rule(campus.store, campus.course, RetentionRule(90, 20), actor_id=campus.ines)
    assert rule_of(campus.store, campus.course) == RetentionRule(90, 20)
    assert rules(campus.store, site)[0][2] == RetentionRule(20, 20), (
        "evidence holds the script, and goes with it"
    )
    assert rules(campus.store, FOR_GOOD)[0][2] == RetentionRule(20, 20)
    set_rule(campus.store, campus.course, FOR_GOOD, actor_id=campus.ines)
    assert rules(campus.store, FOR_GOOD) == ()
    assert [one.kind for one in audit_of(campus.store, f"course:{campus.course}", kind="retention_set")]
    with pytest.raises(UsageError):
        RetentionRule.of_site(-1, 0)


def test_it_goes_in_batches_and_goes_on_after_a_crash(
    campus: Campus, files: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [judged(campus, files, campus.anna, days=40) for _ in range(3)]
    site = RetentionRule(evidence_days=30)
    assert delete_due(campus.store, files, site, limit=2) == 2

    def full(_digest: str) -> bool:
        raise OSError("the disk is away")

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", full)
        with pytest.raises(OSError, match="away"):
            delete_due(campus.store, files, site)
    assert delete_due(campus.store, files, site) == 1, "what was marked and is still there is deleted now"
    assert not any("evidence.tar.gz" in names(campus, one) for one in made)
