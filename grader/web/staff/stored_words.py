"""What is stored as a word of the code, such as a state or an event, in the reader's language."""

from __future__ import annotations

from grader.model.grade import Verdict
from grader.report.words.wording import VERDICTS
from grader.translation import N_, gettext

_WORDS = (
    # States of attempts; verdicts are marked where reports have them.
    N_("cancelled"),
    N_("failed"),
    N_("judged"),
    N_("queued"),
    N_("running"),
    # How grave a finding is.
    N_("error"),
    N_("hint"),
    N_("review"),
    N_("warning"),
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
    # What happened to a course, or to a person.
    N_("announced"),
    N_("announcement pinned"),
    N_("announcement removed"),
    N_("announcement unpinned"),
    N_("anonymity began"),
    N_("certificate reinstated"),
    N_("certificate revoked"),
    N_("certified"),
    N_("closed"),
    N_("course added"),
    N_("course archived"),
    N_("course copied"),
    N_("course deleted"),
    N_("course published"),
    N_("course renamed"),
    N_("course restored"),
    N_("due date moved"),
    N_("enrolled"),
    N_("enrolment changed"),
    N_("evidence deleted"),
    N_("extended"),
    N_("extension retracted"),
    N_("feedback hidden"),
    N_("feedback released"),
    N_("grading rules set"),
    N_("group dissolved"),
    N_("group joined"),
    N_("group left"),
    N_("group made"),
    N_("imported"),
    N_("invitation revoked"),
    N_("invited"),
    N_("invited each"),
    N_("late days set"),
    N_("left"),
    N_("library comment added"),
    N_("library comment changed"),
    N_("library comment retired"),
    N_("names revealed"),
    N_("opened"),
    N_("platform connected"),
    N_("platform disconnected"),
    N_("retention set"),
    N_("roster import began"),
    N_("roster taken"),
    N_("scripts deleted"),
    N_("submissions exported"),
    N_("task grading set"),
    N_("task published"),
    N_("task removed"),
    N_("task set"),
    N_("task set again"),
    N_("task updated"),
    N_("task withdrawn"),
    N_("tasks reordered"),
    N_("time zone set"),
    N_("webhook added"),
    N_("webhook disabled"),
    N_("webhook enabled"),
    N_("webhook removed"),
    N_("webhook secret changed"),
    N_("words changed"),
    # What is told of it.
    N_("alone"),
    N_("announcement"),
    N_("attempt"),
    N_("copied from"),
    N_("evidence days"),
    N_("extra minutes"),
    N_("extra per day"),
    N_("extra total"),
    N_("forms groups"),
    N_("gone"),
    N_("group size"),
    N_("leaderboard"),
    N_("new"),
    N_("num changed"),
    N_("number"),
    N_("per task"),
    N_("regrade days"),
    N_("scripts days"),
    N_("total"),
    N_("webhook"),
    # How people of a list come to an account, and what a leaderboard goes by, where it is no metric.
    N_("invitation"),
    N_("password"),
    N_("points"),
    N_("sign on"),
)


def stored_word(stored: str) -> str:
    """`override_withdrawn` → `override withdrawn`, in the reader's language; what is not named above as it is."""
    return gettext(stored.replace("_", " "))


def verdict_options() -> list[tuple[str, str]]:
    """Verdicts that a person may give, to choose from."""
    return [
        (verdict, text)
        for verdict, text in VERDICTS.items()
        if verdict not in (Verdict.JUDGE_ERROR, Verdict.HELD)
    ]
