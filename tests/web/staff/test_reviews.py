"""What instructors add to a grade, and judging again: the first judgement is always kept, and nothing counts unseen."""

from __future__ import annotations

import html
import re

import pytest

from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.grading import regrades, reviews
from grader.store.grading.gradebook import gradebook
from grader.store.grading.grades import NewGrade, grade_of
from grader.store.queue import claims
from tests.store.campus import verdict_of
from tests.web.conftest import School
from tests.web.grades import FOR_STAFF, graded

SOURCE = "import torch\nmodel = make()\nprint('<b>bold</b>')\n"


def counts(school: School, login: str = "anna") -> tuple[Verdict | None, float]:
    row = next(row for row in gradebook(school.store, school.course).rows if row.login == login)
    return row.cells[school.task].verdict, row.cells[school.task].points


def judge_next(school: School, grade: NewGrade) -> int:
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    attempt_endings.finish(school.store, claimed.attempt_id, claimed.lease_token, grade)
    return claimed.attempt_id


def test_the_review_page_shows_source_findings_and_what_only_staff_may_read(school: School) -> None:
    attempt = school.judge("anna", SOURCE, graded())
    text = school.client("ines").get(f"/attempts/{attempt}/review").text
    assert "print('<b>bold</b>')" in html.unescape(re.sub(r"<[^>]+>", "", text)), "shown as it was written"
    assert "<b>bold" not in text
    assert FOR_STAFF in text
    assert "only staff see this" in text
    assert school.client("anna").get(f"/attempts/{attempt}/review").status_code == 404
    assert school.client("otto").get(f"/attempts/{attempt}/review").status_code == 404


def test_an_override_holds_and_the_judgement_is_kept(school: School) -> None:
    attempt = school.judge("anna", grade=graded(Verdict.REJECTED))
    ines = school.client("ines")
    done = ines.post(
        f"/attempts/{attempt}/override",
        data={"verdict": "accepted", "points": "87,5", "reason": "Seen in person."},
    )
    assert done.headers["location"] == f"/attempts/{attempt}/review"
    assert counts(school) == (Verdict.ACCEPTED, 87.5)
    stored = grade_of(school.store, attempt)
    assert stored is not None
    assert stored.verdict is Verdict.REJECTED
    trail = ines.get(f"/attempts/{attempt}/review").text
    assert "overridden" in trail
    assert "Seen in person." in trail
    assert "by Ines" in trail
    ines.post(f"/attempts/{attempt}/withdraw")
    assert counts(school)[0] is Verdict.REJECTED
    assert "override withdrawn" in ines.get(f"/attempts/{attempt}/review").text


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"reason": "  "}, "A reason is needed"),
        ({"points": "101"}, "from 0 to 100"),
        ({"points": "-1"}, "from 0 to 100"),
        ({"points": "nan"}, "from 0 to 100"),
        ({"points": ""}, "Points are needed"),
        ({"verdict": "judge_error"}, "Choose one"),
    ],
)
def test_an_override_that_cannot_be_is_shown_again(school: School, wrong: dict[str, str], told: str) -> None:
    attempt = school.judge("anna", grade=graded(Verdict.REJECTED))
    form = {"verdict": "accepted", "points": "50", "reason": "my words", **wrong}
    answer = school.client("ines").post(f"/attempts/{attempt}/override", data=form)
    assert answer.status_code == 422
    assert told in answer.text
    assert "reason" in wrong or "my words" in answer.text, "what was typed is not lost"
    assert not reviews.overrides_of(school.store, attempt)


def test_a_comment_stands_at_its_line(school: School) -> None:
    attempt = school.judge("anna", SOURCE, graded())
    ines = school.client("ines")
    ines.post(f"/attempts/{attempt}/comment", data={"text": "Why <here>?", "line": "train.py:2"})
    ines.post(f"/attempts/{attempt}/comment", data={"text": "On the whole fine.", "line": ""})
    for nowhere in ("train.py:99", "121", "train.py 12"):
        answer = ines.post(f"/attempts/{attempt}/comment", data={"text": "Nowhere.", "line": nowhere})
        assert answer.status_code == 422
        assert "There is no such line" in answer.text
        assert f'value="{nowhere}"' in answer.text, "what was typed is not lost"
    assert [(one.path, one.line) for one in reviews.comments_of(school.store, attempt)] == [
        ("train.py", 2),
        (None, None),
    ]
    text = ines.get(f"/attempts/{attempt}/review").text
    assert "Why &lt;here&gt;?" in text
    assert ines.post(f"/attempts/{attempt}/comment", data={"text": "  ", "line": ""}).status_code == 422


def test_a_regrade_is_shown_before_it_counts(school: School) -> None:
    attempt = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    same = school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    ines = school.client("ines")
    asked = ines.post(
        f"/courses/{school.course}/regrades", data={"which": "chosen", "attempt": [str(attempt), str(same)]}
    )
    place = asked.headers["location"]
    judge_next(school, verdict_of(Verdict.ACCEPTED, 90.0))
    judge_next(school, verdict_of(Verdict.ACCEPTED, 100.0))
    preview = ines.get(place).text
    assert f'href="/attempts/{attempt}"' in preview
    assert "+50" in preview
    assert f'href="/attempts/{same}"' not in preview, "it stays as it is"
    assert f'href="/attempts/{same}"' in ines.get(f"{place}?all=1").text
    assert counts(school) == (Verdict.REJECTED, 40.0), "nothing counts before it is applied"
    told = ines.post(f"{place}/apply", follow_redirects=True).text
    assert "Applied: 2 attempts count as judged anew." in told
    assert counts(school) == (Verdict.ACCEPTED, 90.0)
    assert "applied" in ines.get(place).text


def test_one_that_was_judged_anew_is_told_as_one(school: School) -> None:
    attempt = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    ines = school.client("ines")
    place = ines.post(f"/attempts/{attempt}/regrade").headers["location"]
    judge_next(school, verdict_of(Verdict.ACCEPTED, 90.0))
    told = ines.post(f"{place}/apply", follow_redirects=True).text
    assert "Applied: 1 attempt counts as judged anew." in told


def test_a_discarded_regrade_changes_nothing_and_its_rest_is_not_judged(school: School) -> None:
    first, second = (school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0)) for _ in range(2))
    ines = school.client("ines")
    place = ines.post(
        f"/courses/{school.course}/regrades", data={"which": "chosen", "attempt": [str(first), str(second)]}
    ).headers["location"]
    judge_next(school, verdict_of(Verdict.ACCEPTED, 90.0))
    assert ines.post(f"{place}/discard").status_code == 303
    assert not isinstance(claims.claim(school.store, "w1", ("cpu",)), claims.Claimed)
    assert ines.post(f"{place}/apply").status_code == 303
    assert counts(school) == (Verdict.REJECTED, 40.0)


def test_everything_that_matches_is_judged_again(school: School) -> None:
    wrong = [school.judge(login, grade=verdict_of(Verdict.REJECTED, 40.0)) for login in ("anna", "ben")]
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    school.hand_in("ben")
    ines = school.client("ines")
    place = ines.post(
        f"/courses/{school.course}/regrades",
        data={"which": "matching", "verdict": "rejected", "confirmed": "yes"},
    ).headers["location"]
    batch = place.rpartition("/")[2]
    assert sorted(one.attempt_id for one in regrades.preview(school.store, batch)) == wrong
    # A regrade is on its own lane, behind what a learner waits for.
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    assert claimed.attempt_id not in {one.regrade_id for one in regrades.preview(school.store, batch)}


def test_attempts_of_another_course_are_never_judged_again_from_here(school: School) -> None:
    theirs = school.judge("olga", task=school.other_task)
    ines = school.client("ines")
    before = len(attempts(school.store, AttemptFilter()))
    answer = ines.post(
        f"/courses/{school.course}/regrades", data={"which": "chosen", "attempt": [str(theirs)]}
    )
    assert answer.headers["location"] == f"/courses/{school.course}/attempts"
    ines.post(
        f"/courses/{school.course}/regrades",
        data={"which": "matching", "task": str(school.other_task), "confirmed": "yes"},
    )
    assert len(attempts(school.store, AttemptFilter())) == before
    batch = regrades.queue_new_runs(school.store, [theirs], actor_id=school.people["otto"])
    assert ines.get(f"/regrades/{batch}").status_code == 404
    assert ines.post(f"/regrades/{batch}/apply").status_code == 404


def test_nothing_ended_is_told(school: School) -> None:
    waiting = school.hand_in("anna")
    answer = school.client("ines").post(f"/attempts/{waiting}/regrade", follow_redirects=True)
    assert "none of these attempts has ended" in answer.text
