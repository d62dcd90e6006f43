"""Held attempts: nobody's fault and somebody's work. They count as nothing, and stand in a queue, until one decides."""

from __future__ import annotations

import pytest

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts import attempt_results
from grader.store.attempts.attempt_endings import finish
from grader.store.courses import enrolments
from grader.store.events import events_of
from grader.store.grading import certificates, held_attempts, regrades, reviews
from grader.store.grading.gradebook import GradebookCell, gradebook
from grader.store.grading.progress import progress
from tests.store.campus import Campus, verdict_of

HELD = verdict_of(Verdict.HELD, 95.0)


def cell(campus: Campus) -> GradebookCell:
    row = next(row for row in gradebook(campus.store, campus.course).rows if row.person_id == campus.anna)
    return row.cells[campus.task]


def queue(campus: Campus) -> list[int]:
    found = held_attempts.held_attempts(campus.store, campus.course)
    assert len(found) == held_attempts.num_held(campus.store, campus.course)
    return [one.attempt_id for one in found]


def test_the_best_other_attempt_counts_while_one_is_held(campus: Campus) -> None:
    judged = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0))
    held = campus.judge(campus.anna, grade=HELD)
    assert (cell(campus).attempt_id, cell(campus).points) == (judged, 40.0)
    reviews.override(campus.store, held, Verdict.ACCEPTED, 95.0, "looked at", actor_id=campus.ines)
    assert (cell(campus).attempt_id, cell(campus).points) == (held, 95.0)
    reviews.withdraw_override(campus.store, held, actor_id=campus.ines)
    assert cell(campus).attempt_id == judged, "it waits again"


def test_where_all_are_held_nothing_counts_and_the_cell_says_so(campus: Campus) -> None:
    held = campus.judge(campus.anna, grade=HELD)
    assert (cell(campus).attempt_id, cell(campus).verdict, cell(campus).points) == (held, Verdict.HELD, 0.0)
    assert isinstance(certificates.issue(campus.store, campus.course, campus.anna), certificates.MissingTasks)
    assert certificates.earned(campus.store, campus.course) == ()


def test_the_learner_is_told_since_when_and_no_longer_once_it_is_decided(campus: Campus) -> None:
    held = campus.judge(campus.anna, grade=HELD)
    (own,) = progress(campus.store, campus.course, campus.anna)
    since = held_attempts.held_since(campus.store, [held])
    assert own.held is not None
    assert since == {held: own.held.since}
    assert progress(campus.store, campus.course, campus.ben)[0].held is None
    reviews.override(campus.store, held, Verdict.REJECTED, 10.0, "not yours", actor_id=campus.ines)
    assert progress(campus.store, campus.course, campus.anna)[0].held is None
    assert held_attempts.held_since(campus.store, [held]) == {}
    result = attempt_results.results_of(campus.store, [held])[held]
    assert (result.verdict, result.points, result.decided) == (Verdict.REJECTED, 10.0, True)


def test_the_queue_has_the_oldest_first_and_only_what_nobody_decided(campus: Campus) -> None:
    first, second = campus.judge(campus.ben, grade=HELD), campus.judge(campus.anna, grade=HELD)
    campus.judge(campus.anna)
    campus.judge(campus.ines, grade=HELD)
    assert queue(campus) == [first, second], "what an instructor tries out is nobody's work"
    reviews.override(campus.store, first, Verdict.ACCEPTED, 95.0, "fine", actor_id=campus.ines)
    assert queue(campus) == [second]
    enrolments.leave(campus.store, campus.course, campus.anna, actor_id=campus.ines)
    assert queue(campus) == []


def test_who_asks_decides_nothing_and_the_queue_says_that_somebody_asked(campus: Campus) -> None:
    held = campus.judge(campus.anna, grade=HELD)
    with pytest.raises(UsageError, match="needs a text"):
        reviews.ask(campus.store, held, "  ", author_id=campus.ines)
    reviews.ask(campus.store, held, "What is line 3 for?", author_id=campus.ines)
    (one,) = held_attempts.held_attempts(campus.store, campus.course)
    assert one.waits_for_learner
    assert [remark.text for remark in reviews.comments_of(campus.store, held)] == ["What is line 3 for?"]
    assert cell(campus).verdict is Verdict.HELD


def test_an_answer_is_kept_once_and_gives_the_attempt_back_to_the_instructors(campus: Campus) -> None:
    held = campus.judge(campus.anna, grade=HELD)
    with pytest.raises(UsageError, match="no question waits"):
        reviews.answer(campus.store, held, "Why not?", author_id=campus.anna)
    reviews.ask(campus.store, held, "What is line 3 for?", author_id=campus.ines)
    assert held_attempts.open_questions(campus.store, [held])[held].text == "What is line 3 for?"
    with pytest.raises(UsageError, match="needs a text"):
        reviews.answer(campus.store, held, " ", author_id=campus.anna)
    reviews.answer(campus.store, held, "It counts.", author_id=campus.anna)
    (one,) = held_attempts.held_attempts(campus.store, campus.course)
    assert not one.waits_for_learner
    assert one.last_word is not None
    assert (one.last_word.answered, one.last_word.text) == (True, "It counts.")
    kinds = [event.kind for event in events_of(campus.store, held)]
    assert kinds[-4:] == ["commented", "asked", "commented", "answered"]
    with pytest.raises(UsageError, match="no question waits"):
        reviews.answer(campus.store, held, "Twice.", author_id=campus.anna)
    reviews.ask(campus.store, held, "And line 4?", author_id=campus.ines)
    assert held_attempts.open_questions(campus.store, [held])[held].text == "And line 4?"
    reviews.override(campus.store, held, Verdict.ACCEPTED, 90.0, "fine", actor_id=campus.ines)
    assert not held_attempts.open_questions(campus.store, [held]), "nothing waits once it is decided"


def test_a_decision_holds_for_what_is_judged_again_and_an_answer_of_a_regrade_ends_the_wait(
    campus: Campus,
) -> None:
    held = campus.judge(campus.anna, grade=HELD)
    batch = regrades.queue_new_runs(campus.store, [held], actor_id=campus.ines)
    claimed = campus.claim()
    finish(campus.store, claimed.attempt_id, claimed.lease_token, verdict_of(Verdict.HELD, 90.0))
    assert queue(campus) == [held], "what is not applied is not there yet"
    regrades.apply(campus.store, batch, actor_id=campus.ines)
    assert queue(campus) == [claimed.attempt_id]
    reviews.override(campus.store, held, Verdict.ACCEPTED, 90.0, "fine", actor_id=campus.ines)
    assert queue(campus) == []


def test_an_override_that_decides_nothing_is_refused(campus: Campus) -> None:
    judged = campus.judge(campus.anna)
    with pytest.raises(UsageError, match="an override decides"):
        reviews.override(campus.store, judged, Verdict.HELD, 0.0, "hm", actor_id=campus.ines)
