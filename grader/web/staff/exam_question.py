"""Asking before an exam that is on is changed: learners are at it just now."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from grader.report.wording import plural
from grader.store.courses import AssignedTask
from grader.store.exam_freeze import ExamRunsError
from grader.web.confirmation import Question, ask_first
from grader.web.staff.course_request import CourseRequest
from grader.web.staff.form import SubmittedForm


def ask_during_exam(
    request: CourseRequest, task: AssignedTask, error: ExamRunsError, form: SubmittedForm
) -> HTMLResponse:
    """The page with the question, which sends the same form again."""
    question = Question(
        f"Change “{task.terms.title}” while the exam is on?",
        f"{plural(error.num_begun, 'learner')} {'has' if error.num_begun == 1 else 'have'} begun it. What you change "
        "holds for them at once: dates and minutes move their end, another version judges what they hand in from now "
        "on.",
        "Change it all the same",
        f"{request.at}/settings/{task.id}",
        fields=form.values,
    )
    return ask_first(request.service, request.http, request.visitor, question)
