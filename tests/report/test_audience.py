"""What a learner reads of a held attempt: what could not be watched by name, and nothing of what is doubted."""

from __future__ import annotations

from dataclasses import replace

from grader.model.grade import Grade, ItemState, Verdict
from grader.report.audience import Audience, for_audience
from tests.report import factory

TITLES = ("Every sample goes to exactly one rank", "Gradients are averaged over the ranks")


def held(*more: str) -> Grade:
    rubric = tuple(
        replace(
            item, state=ItemState.NOT_SEEN, not_seen=item.points, reason="Only a rank of its own loads data."
        )
        if item.title in TITLES
        else item
        for item in factory.rubric()
    )
    review = tuple(item.not_seen_reason for item in rubric if item.not_seen)
    return factory.grade(Verdict.HELD, verdict_reason="Held.", rubric=rubric, review=(*review, *more))


def told(grade: Grade) -> str:
    return for_audience(grade, Audience.LEARNER).verdict_reason


def test_what_could_not_be_watched_is_named_without_blame() -> None:
    sentence = told(held())
    assert "could not watch" in sentence
    assert all(f"“{title}”" in sentence for title in TITLES)
    assert "nobody has found you at fault" in sentence
    assert "25 of 25" not in sentence, "what staff weigh is theirs"


def test_what_is_doubted_is_told_to_nobody_but_staff() -> None:
    for doubted in ("TRUST002: The trace cannot be true.", "0.5 s is far below every calibrated run."):
        sentence = told(held(doubted))
        assert sentence == told(factory.grade(Verdict.HELD, review=(doubted,)))
        assert not any(title in sentence for title in TITLES)
        assert "watch" not in sentence


def test_what_is_looked_at_is_told_without_what_was_seen() -> None:
    seen, subject = "TRUST002: Ranks 0 and 1 stepped on the very same.", "how the gradients come about"
    grade = factory.grade(
        Verdict.HELD,
        verdict_reason="Held.",
        review=(seen, seen),
        review_subjects=(subject, "the training time"),
    )
    sentence = told(grade)
    assert f"To be looked at: {subject} and the training time." in sentence
    assert "nobody has found you at fault" in sentence
    assert "very same" not in sentence
    assert "TRUST" not in sentence
    assert for_audience(grade, Audience.STAFF).review == (seen, seen)


def test_read_twice_it_says_the_same() -> None:
    once = for_audience(held(), Audience.LEARNER)
    assert for_audience(once, Audience.LEARNER) == once
