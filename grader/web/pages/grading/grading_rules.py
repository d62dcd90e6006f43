"""How people grade in a course: with names or pseudonyms, asked again until when, in groups, ranked; where it talks."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses.grading_rules import (
    MOST_DAYS,
    MOST_MEMBERS,
    GradingRules,
    TaskGrading,
    grading_rules,
    set_grading_rules,
    set_task_grading,
    task_gradings,
)
from grader.store.grading.pseudonyms import anonymous_tasks
from grader.translation import gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.learner.leaderboard import measures_of
from grader.web.security.access import Id
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()
_ANONYMOUS: dict[str, bool | None] = {"": None, "yes": True, "no": False}


@router.get("/courses/{course_id}/grading")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The course's rules, and what is different in a task."""
    rules = grading_rules(request.service.store, request.course.id)
    fields = {
        "anonymous": "on" if rules.anonymous else "",
        "regrade_days": f"{rules.regrade_days or ''}",
        "forms_groups": "on" if rules.forms_groups else "",
        "group_size": f"{rules.group_size or ''}",
        "forum_url": rules.forum_url or "",
    }
    return _page(request, SubmittedForm({name: [text] for name, text in fields.items() if text}, {}))


@router.post("/courses/{course_id}/grading")
def change(request: CourseRequestDep, form: FormDep) -> Response:
    """Change the rules; showing names that were hidden is asked about first."""
    rules = GradingRules(
        anonymous=form.ticked("anonymous"),
        regrade_days=form.whole("regrade_days", least=1, most=MOST_DAYS),
        forms_groups=form.ticked("forms_groups"),
        group_size=form.whole("group_size", least=2, most=MOST_MEMBERS),
        forum_url=form.text("forum_url", most=500) or None,
    )
    if not form.good:
        return _page(request, form, 422)
    store, course_id = request.service.store, request.course.id
    if grading_rules(store, course_id).anonymous and not rules.anonymous and not is_confirmed(form):
        text = gettext(
            "Everybody who teaches the course sees from now on whose attempts those of all tasks that say nothing of "
            "their own are. That cannot be unseen; who did it, and when, stands in the audit."
        )
        return _ask(request, form, text)
    try:
        set_grading_rules(store, course_id, rules, actor_id=request.actor)
    except UsageError as error:
        form.errors["forum_url"] = gettext("Nothing was saved: {problem}.").format(
            problem=problem_text(error)
        )
        return _page(request, form, 422)
    return request.redirect("grading", gettext("Saved."))


@router.post("/courses/{course_id}/grading/{course_task_id}")
def change_task(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Change what is different in one task."""
    task, store = request.task(course_task_id), request.service.store
    measures = {"": ("", False)} | {
        one.name: (one.name, one.lowest_first) for one in measures_of(request.service, task)
    }
    leaderboard, lowest = measures.get(form.text("leaderboard", most=80), ("", False))
    grading = TaskGrading(
        anonymous=_ANONYMOUS.get(form.text("anonymous", most=3)),
        alone=form.ticked("alone"),
        leaderboard=leaderboard or None,
        lowest_first=lowest,
    )
    rules = grading_rules(store, request.course.id)
    stays = rules.anonymous if grading.anonymous is None else grading.anonymous
    if task.id in anonymous_tasks(store, request.course.id) and not stays and not is_confirmed(form):
        text = gettext(
            "Everybody who teaches the course sees from now on whose attempts those of “{title}” are. That cannot be "
            "unseen; who did it, and when, stands in the audit."
        )
        return _ask(request, form, text.format(title=task.terms.title))
    set_task_grading(store, request.course.id, task.id, grading, actor_id=request.actor)
    return request.redirect("grading", gettext("Saved for {title}.").format(title=task.terms.title))


def _ask(request: CourseRequest, form: SubmittedForm, text: str) -> HTMLResponse:
    question = Question(
        gettext("Show names instead of pseudonyms?"),
        text,
        gettext("Show the names"),
        f"{request.at}/grading",
        fields=form.values,
    )
    return ask_first(request.service, request.http, request.visitor, question)


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    store = request.service.store
    gradings = task_gradings(store, request.course.id)
    tasks = [one for one in request.tasks() if not one.withdrawn]
    return request.page(
        "grading.html.j2",
        {
            "form": form,
            "tasks": [(one, gradings.get(one.id, TaskGrading())) for one in tasks],
            "measures": {one.id: measures_of(request.service, one) for one in tasks},
            "any_anonymous": bool(anonymous_tasks(store, request.course.id)),
        },
        status_code,
    )
