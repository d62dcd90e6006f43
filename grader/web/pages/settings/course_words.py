"""What a course calls itself and says about itself, and its short name, by which commands know it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import course_life, courses
from grader.store.courses.archived_courses import CourseArchivedError
from grader.translation import counted, gettext
from grader.web.lookups.catalog import about_course
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()
_MOST_TITLE, _MOST_ABOUT = 200, 1000


@router.get("/courses/{course_id}/words")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The words as they are."""
    course = request.course
    words = {"title": [course.title], "about": [about_course(course)], "name": [course.name]}
    return _page(request, SubmittedForm(words, {}))


@router.post("/courses/{course_id}/words")
def change(request: CourseRequestDep, form: FormDep) -> Response:
    """Other words; who has the page open reads them when it is loaded again."""
    title, about = form.needed("title", gettext("A title")), form.text("about")
    for name, text, most in (("title", title, _MOST_TITLE), ("about", about, _MOST_ABOUT)):
        if len(text) > most:
            form.errors[name] = counted(
                "At most %(num)s character, please.", "At most %(num)s characters, please.", most
            )
    name = form.text("name", most=120) or request.course.name
    if form.good and name != request.course.name:
        _rename(request, name, form)
    if not form.good:
        return _page(request, form, 422)
    course_life.set_words(request.service.store, request.course.id, title, about, actor_id=request.actor)
    return request.redirect("settings", gettext("The course is called so now."))


def _rename(request: CourseRequest, name: str, form: SubmittedForm) -> None:
    store = request.service.store
    if not course_life.is_course_name(name):
        form.errors["name"] = gettext("Small letters, digits, dots and hyphens, such as ddp-autumn.")
        return
    if any(one.name == name for one in courses.courses(store)):
        form.errors["name"] = gettext("There is a course named {name} already.").format(name=name)
        return
    try:
        course_life.rename(store, request.course.id, name, actor_id=request.actor)
    except CourseArchivedError:
        raise
    except UsageError as error:
        form.errors["name"] = f"{error}"


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    return request.page("course_words.html.j2", {"form": form}, status_code)
