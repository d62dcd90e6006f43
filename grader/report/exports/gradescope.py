"""A grade as the `results.json` that Gradescope reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.model.grade import Grade

if TYPE_CHECKING:
    from grader.report.audience import Audience

HELP = "write a results.json as Gradescope reads it, too"


def of_grade(grade: Grade, audience: Audience) -> str:  # noqa: ARG001 - learners read this file
    """The document as indented JSON with a newline at its end. There is one audience, whoever asks: the learner."""
    from grader.report.gradescope_results import gradescope_results

    return gradescope_results(grade)
