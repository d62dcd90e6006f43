"""The groups of a course as staff make them: one by one, or from a list."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import learner_groups
from grader.store.courses.enrolments import Participant, participants
from grader.store.courses.grading_rules import grading_rules
from grader.store.courses.learner_groups import LearnerGroup
from grader.store.tables.person import Role
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.group_list import MAX_BYTES, read_group_list
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.get("/courses/{course_id}/groups")
def show(request: CourseRequestDep) -> HTMLResponse:
    """All groups, and who is in none."""
    return _page(request, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/groups")
def make(request: CourseRequestDep, form: FormDep) -> Response:
    """An empty one."""
    name = form.needed("name", gettext("A name"))
    if any(one.name == name for one in learner_groups.groups_of(request.service.store, request.course.id)):
        form.errors["name"] = gettext("there is a group named {name} already").format(name=name)
    if form.good:
        try:
            learner_groups.make_group(request.service.store, request.course.id, name, actor_id=request.actor)
        except UsageError as error:
            form.errors["name"] = problem_text(error)
    if not form.good:
        return _page(request, form, 422)
    return request.redirect("groups", gettext("{name} is made.").format(name=name))


@router.post("/courses/{course_id}/groups/list")
def take_over(request: CourseRequestDep, form: FormDep) -> Response:
    """Put learners into groups as a list says, all of them or none."""
    file = form.files.get("list")
    data = b"" if file is None else file.file.read(MAX_BYTES + 1)
    try:
        wanted = read_group_list(data or form.text("text", most=MAX_BYTES).encode())
        _refuse_strangers(request, wanted)
        new = learner_groups.put_into_groups(
            request.service.store, request.course.id, wanted, actor_id=request.actor
        )
    except UsageError as error:
        form.errors["text"] = _nothing_changed(error)
        return _page(request, form, 422)
    told = counted(
        "%(num)s learner put into their groups.", "%(num)s learners put into their groups.", len(wanted)
    )
    if new:
        made = counted("%(num)s group is new.", "%(num)s groups are new.", new)
        told = f"{told} {made}"
    return request.redirect("groups", told)


@router.post("/courses/{course_id}/groups/{group_id}/members")
def put(request: CourseRequestDep, group_id: Id, form: FormDep) -> Response:
    """Put a learner into a group, out of the one that they are in."""
    group, person = _group(request, group_id), form.ids("person")
    if len(person) != 1:
        return request.redirect("groups", gettext("Choose somebody."), kind="problem")
    try:
        learner_groups.put_into_group(
            request.service.store, request.course.id, group.id, person[0], actor_id=request.actor
        )
    except UsageError as error:
        return request.redirect("groups", _nothing_changed(error), kind="problem")
    told = gettext("What {group} hands in from now on counts for them, too.").format(group=group.name)
    return request.redirect("groups", told)


@router.post("/courses/{course_id}/groups/{group_id}/members/{person_id}/remove")
def take_out(request: CourseRequestDep, group_id: Id, person_id: Id) -> Response:
    """Take a learner out of a group."""
    group = _group(request, group_id)
    if person_id not in {one.person_id for one in group.members}:
        raise not_found()
    learner_groups.take_out_of_group(
        request.service.store, request.course.id, person_id, actor_id=request.actor
    )
    return request.redirect("groups", gettext("They are in no group now, and keep what they have."))


@router.post("/courses/{course_id}/groups/{group_id}/dissolve")
def dissolve(request: CourseRequestDep, group_id: Id, form: FormDep) -> Response:
    """Let a group be no more; asked first."""
    group = _group(request, group_id)
    if not is_confirmed(form):
        question = Question(
            gettext("Dissolve {group}?").format(group=group.name),
            counted(
                "%(num)s learner will hand in alone. What the group handed in counts on for all for whom it counted.",
                "%(num)s learners will hand in alone. What the group handed in counts on for all for whom it counted.",
                len(group.members),
            ),
            gettext("Dissolve it"),
            f"{request.at}/groups",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    learner_groups.dissolve_group(request.service.store, request.course.id, group.id, actor_id=request.actor)
    return request.redirect("groups", gettext("{group} is dissolved.").format(group=group.name))


def _group(request: CourseRequest, group_id: int) -> LearnerGroup:
    for one in learner_groups.groups_of(request.service.store, request.course.id):
        if one.id == group_id:
            return one
    raise not_found()


def _nothing_changed(error: UsageError) -> str:
    return gettext("Nothing was changed: {problem}.").format(problem=problem_text(error))


def _refuse_strangers(request: CourseRequest, wanted: Mapping[str, str]) -> None:
    """What the store refuses once more, in the reader's language."""
    learners = {one.login for one in _learners(request)}
    strangers = sorted(set(wanted) - learners)
    if strangers:
        told = gettext("do not learn in this course: {logins}")
        raise UsageError(told.format(logins=", ".join(strangers[:10])))


def _learners(request: CourseRequest) -> list[Participant]:
    return [one for one in participants(request.service.store, request.course.id) if one.role is Role.LEARNER]


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    store, course_id = request.service.store, request.course.id
    groups = learner_groups.groups_of(store, course_id)
    inside = {one.person_id for group in groups for one in group.members}
    return request.page(
        "groups.html.j2",
        {
            "groups": groups,
            "alone": [one for one in _learners(request) if one.person_id not in inside],
            "rules": grading_rules(store, course_id),
            "form": form,
        },
        status_code,
    )
