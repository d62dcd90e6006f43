"""What verdicts, states, severities and acts around an attempt are called on staff pages, which have them as stored."""

from __future__ import annotations

from grader.model.grade import Verdict
from grader.report.wording import VERDICTS
from grader.translation import N_, gettext

_WORDS = (
    # Verdicts, and states of attempts.
    N_("accepted"),
    N_("crashed"),
    N_("deadlocked"),
    N_("held"),
    N_("judge error"),
    N_("out of memory"),
    N_("rejected"),
    N_("timed out"),
    N_("cancelled"),
    N_("failed"),
    N_("judged"),
    N_("queued"),
    N_("running"),
    # How grave a finding is, and where it comes from.
    N_("error"),
    N_("hint"),
    N_("review"),
    N_("warning"),
    N_("evaluation"),
    N_("outside"),
    N_("source"),
    N_("trace"),
    # What happened to an attempt.
    N_("answered"),
    N_("asked"),
    N_("cancel requested"),
    N_("claimed"),
    N_("comment changed"),
    N_("comment withdrawn"),
    N_("commented"),
    N_("overridden"),
    N_("override withdrawn"),
    N_("regrade request decided"),
    N_("regrade requested"),
    N_("replied"),
    N_("reply settled"),
    N_("requeued"),
    # What became of a file.
    N_("added"),
    N_("changed"),
    N_("removed"),
    N_("renamed"),
)


def event_name(kind: str) -> str:
    """What happened to an attempt, in the reader's language: `override_withdrawn` → `override withdrawn`."""
    return gettext(kind.replace("_", " "))


def verdict_options() -> list[tuple[str, str]]:
    """Verdicts that a person may give, to choose from."""
    return [
        (verdict, gettext(text))
        for verdict, text in VERDICTS.items()
        if verdict not in (Verdict.JUDGE_ERROR, Verdict.HELD)
    ]
