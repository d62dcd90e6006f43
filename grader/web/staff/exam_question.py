"""Asking before an exam that is on is changed: learners are at it just now."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from grader.store.courses.courses import AssignedTask
from grader.store.courses.exam_freeze import ExamRunsError
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first
from grader.web.staff.course_request import CourseRequest
from grader.web.staff.form import SubmittedForm


def ask_during_exam(
    request: CourseRequest, task: AssignedTask, error: ExamRunsError, form: SubmittedForm
) -> HTMLResponse:
    """The page with the question, which sends the same form again."""
    question = Question(
        gettext("Change “{title}” while the exam is on?").format(title=task.terms.title),
        counted(
            "%(num)s learner has begun it. What you change holds for them at once: dates and minutes move their end, "
            "another version judges what they hand in from now on.",
            "%(num)s learners have begun it. What you change holds for them at once: dates and minutes move their end, "
            "another version judges what they hand in from now on.",
            error.num_begun,
        ),
        gettext("Change it all the same"),
        f"{request.at}/settings/{task.id}",
        fields=form.values,
    )
    return ask_first(request.service, request.http, request.visitor, question)
