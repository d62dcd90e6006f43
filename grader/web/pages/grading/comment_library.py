"""A course's library of comments: adding, changing (with those that used an entry, or without), offering no more."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.grading.comment_library import (
    MOST_POINTS,
    LibraryComment,
    StoredEntry,
    add_entry,
    change_entry,
    entries_of,
    retire_entry,
)
from grader.store.grading.comment_points import CommentPoints
from grader.translation import counted, gettext
from grader.web.lookups.catalog import cached_task
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep, ReaderRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.get("/courses/{course_id}/library")
def show(request: ReaderRequestDep) -> HTMLResponse:
    """What there is, and for instructors the form for more."""
    return _page(request, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/library")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """One more."""
    comment = _comment(form)
    if form.good:
        try:
            add_entry(request.service.store, request.course.id, comment, actor_id=request.actor)
        except UsageError as error:
            form.errors["points"] = problem_text(error)
    if not form.good:
        return _page(request, form, status_code=422)
    return request.redirect("library", gettext("“{title}” is in the library.").format(title=comment.title))


@router.get("/courses/{course_id}/library/{entry_id}")
def show_one(request: CourseRequestDep, entry_id: Id) -> HTMLResponse:
    """One of them, to be changed."""
    entry = _entry(request, entry_id)
    points = entry.comment.points
    fields = {"title": entry.comment.title, "text": entry.comment.text}
    if points is not None:
        fields |= {"points": f"{points.points:g}", "item": points.item or ""}
    return _page(request, SubmittedForm({name: [text] for name, text in fields.items()}, {}), entry)


@router.post("/courses/{course_id}/library/{entry_id}")
def change(request: CourseRequestDep, entry_id: Id, form: FormDep) -> Response:
    """Change it, and the comments that came from it where that is ticked."""
    entry, comment = _entry(request, entry_id), _comment(form)
    if form.good:
        try:
            number = change_entry(
                request.service.store,
                request.course.id,
                entry.id,
                comment,
                also_used=form.ticked("also_used"),
                actor_id=request.actor,
            )
        except UsageError as error:
            form.errors["points"] = problem_text(error)
        else:
            told = counted(
                "Changed, and %(num)s comment that came from it.",
                "Changed, and %(num)s comments that came from it.",
                number,
            )
            return request.redirect("library", told if number else gettext("Changed."))
    return _page(request, form, entry, 422)


@router.post("/courses/{course_id}/library/{entry_id}/retire")
def retire(request: CourseRequestDep, entry_id: Id) -> Response:
    """Offer it no more."""
    entry = _entry(request, entry_id)
    retire_entry(request.service.store, request.course.id, entry.id, actor_id=request.actor)
    return request.redirect("library", gettext("It is offered no more. Comments that came from it stay."))


def _comment(form: SubmittedForm) -> LibraryComment:
    title, text = form.needed("title", gettext("A title")), form.needed("text", gettext("A text"))
    form.values["points"] = [form.text("points", most=40).replace("−", "-")]
    points = form.number("points", least=-MOST_POINTS, most=MOST_POINTS)
    change = CommentPoints(points, form.text("item", most=80) or None) if points else None
    return LibraryComment(title[:120], text, change)


def _entry(request: CourseRequest, entry_id: int) -> StoredEntry:
    for one in entries_of(request.service.store, request.course.id):
        if one.id == entry_id:
            return one
    raise not_found()


def _page(
    request: CourseRequest, form: SubmittedForm, entry: StoredEntry | None = None, status_code: int = 200
) -> HTMLResponse:
    items: dict[str, str] = {}
    for one in request.tasks():
        known = cached_task(request.service, one.task, one.terms.version)
        for item in () if known is None else known.rubric:
            items.setdefault(item.id, f"{item.title} ({one.terms.title})")
    chosen = form.text("item", most=80)
    if chosen:
        items.setdefault(chosen, chosen)
    return request.page(
        "library.html.j2",
        {
            "entries": entries_of(request.service.store, request.course.id),
            "entry": entry,
            "items": list(items.items()),
            "titles": items,
            "form": form,
        },
        status_code,
    )
