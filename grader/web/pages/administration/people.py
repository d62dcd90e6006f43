"""All accounts, for administrators: roles, one-time passwords, closing, erasing, and making one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.people import people
from grader.store.people.erasure import erase
from grader.store.people.own_courses import courses_of
from grader.store.people.people import Account
from grader.store.tables.person import SITE_ROLES, Role
from grader.translation import N_, gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.role_names import role_name
from grader.web.security.access import Admin, Id, Visitor, not_found
from grader.web.security.sign_in import need_passwords
from grader.web.service import ServiceDep, WebService
from grader.web.staff import accounts
from grader.web.staff.accounts import PasswordHandout
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.links import link
from grader.web.staff.roster import problem_with

router = APIRouter()
_PAGE = 100
_MOST_ACCOUNTS = 1_000_000
_PLACE = "/admin/people"
_POWERS = {
    Role.ADMIN: N_(
        "An administrator sees and changes everything on this site: all courses, grades and accounts."
    ),
    Role.INSTRUCTOR: N_(
        "An instructor sees and may pause the whole queue; what they teach is set in each course."
    ),
}


@router.get("/admin/people")
def show(request: Request, service: ServiceDep, visitor: Admin, q: str = "", start: str = "") -> HTMLResponse:
    """Accounts by name, a hundred at a time."""
    return _page(request, service, visitor, SubmittedForm({"q": [q], "start": [start]}, {}))


@router.post("/admin/people")
def add(request: Request, service: ServiceDep, visitor: Admin, form: FormDep) -> Response:
    """A new account with a one-time password, shown once; programs get none, nor where passwords open nothing."""
    login, name = form.needed("login", gettext("A login")).casefold(), form.needed("name", gettext("A name"))
    role = Role(form.one_of("role", SITE_ROLES))
    trouble = problem_with(login, name) if form.good else None
    if trouble is not None:
        form.errors["login"] = trouble
    if not form.good:
        return _page(request, service, visitor, form, 422)
    signs_on = not service.sign_on.local_passwords
    password = None if role is Role.CI or signs_on else people.one_time_password()
    try:
        people.add_person(
            service.store,
            login,
            name,
            role,
            password=password,
            must_change=password is not None,
            actor_id=visitor.account.id,
        )
    except UsageError:
        form.errors["login"] = gettext("The login {login} is taken.").format(login=login)
        return _page(request, service, visitor, form, 422)
    if password is None:
        text = (
            gettext("{login} is there. It signs in with tokens only.")
            if role is Role.CI
            else gettext("{login} is there. They come in by signing on.")
        )
        return flash.redirect(_PLACE, service.secret, text.format(login=login))
    return _handout(request, service, visitor, PasswordHandout(name, login, password))


@router.get("/admin/people/{person_id}")
def one(request: Request, service: ServiceDep, visitor: Admin, person_id: Id) -> HTMLResponse:
    """One account."""
    return _one(request, service, visitor, _account(service, person_id), "")


@router.post("/admin/people/{person_id}/password")
def reset(request: Request, service: ServiceDep, visitor: Admin, person_id: Id) -> Response:
    """A one-time password, shown once; all sessions of the account end."""
    need_passwords(service)
    found = _account(service, person_id)
    if found.role is Role.CI:
        return flash.redirect(
            _at(found), service.secret, gettext("Programs sign in with tokens."), kind="problem"
        )
    return _handout(
        request,
        service,
        visitor,
        accounts.reset_password(service.store, found.id, actor_id=visitor.account.id),
    )


@router.post("/admin/people/{person_id}/role")
def change_role(
    request: Request, service: ServiceDep, visitor: Admin, person_id: Id, form: FormDep
) -> Response:
    """Another role in the whole service; what somebody is in a course is set there."""
    found = _account(service, person_id)
    if found.id == visitor.account.id:
        return flash.redirect(
            _at(found), service.secret, gettext("Let another administrator change your role."), kind="problem"
        )
    role = Role(form.one_of("role", SITE_ROLES))
    if role in _POWERS and role is not found.role and not is_confirmed(form):
        question = Question(
            gettext("Give {name} the role {role}?").format(name=found.name, role=role_name(role)),
            gettext(_POWERS[role]),
            gettext("Make {name} {role}").format(name=found.name, role=role_name(role)),
            _at(found),
            fields=form.values,
        )
        return ask_first(service, request, visitor, question)
    people.set_role(service.store, found.id, role, actor_id=visitor.account.id)
    text = gettext("{name} is {role} now; their sessions have ended.")
    return flash.redirect(_at(found), service.secret, text.format(name=found.name, role=role_name(role)))


@router.post("/admin/people/{person_id}/door")
def door(service: ServiceDep, visitor: Admin, person_id: Id, form: FormDep) -> Response:
    """Close an account, or open it again."""
    found = _account(service, person_id)
    if found.id == visitor.account.id:
        return flash.redirect(
            _at(found), service.secret, gettext("You would lock yourself out."), kind="problem"
        )
    enabled = form.text("open") == "yes"
    people.set_enabled(service.store, found.id, enabled, actor_id=visitor.account.id)
    return flash.redirect(
        _at(found),
        service.secret,
        gettext("The account is open.") if enabled else gettext("The account is closed."),
    )


@router.post("/admin/people/{person_id}/erase")
def do_erase(request: Request, service: ServiceDep, visitor: Admin, person_id: Id, form: FormDep) -> Response:
    """Erase an account with all that is theirs, if its login was typed."""
    found = _account(service, person_id)
    if found.id == visitor.account.id:
        return flash.redirect(
            _at(found), service.secret, gettext("Let another administrator erase you."), kind="problem"
        )
    if form.text("confirm").casefold() != found.login:
        return _one(
            request,
            service,
            visitor,
            found,
            gettext("Type {login} to confirm.").format(login=found.login),
            422,
        )
    gone = erase(service.store, service.files, found.id, actor_id=visitor.account.id)
    message = gettext(
        "Erased, with {submissions} submissions and {files} files. Nothing brings it back."
    ).format(submissions=gone.num_submissions, files=gone.num_files)
    return flash.redirect(_PLACE, service.secret, message)


def _page(
    request: Request, service: WebService, visitor: Visitor, form: SubmittedForm, status_code: int = 200
) -> HTMLResponse:
    search, given = form.text("q", most=200), form.ids("start")
    start = min(given[0], _MOST_ACCOUNTS) if given else 0
    found = people.accounts(service.store, search, start=start, limit=_PAGE + 1)
    return service.render(
        request,
        "staff/admin_people.html.j2",
        visitor=visitor,
        status_code=status_code,
        people=found[:_PAGE],
        q=search,
        first=link(_PLACE, {"q": search}) if start else "",
        more=link(_PLACE, {"q": search, "start": start + _PAGE}) if len(found) > _PAGE else "",
        roles=_roles(),
        form=form,
    )


def _one(
    request: Request,
    service: WebService,
    visitor: Visitor,
    found: Account,
    error: str,
    status_code: int = 200,
) -> HTMLResponse:
    return service.render(
        request,
        "staff/admin_person.html.j2",
        visitor=visitor,
        status_code=status_code,
        person=found,
        own=courses_of(service.store, found.id),
        local_passwords=service.sign_on.local_passwords,
        roles=_roles(),
        error=error,
        self_=found.id == visitor.account.id,
    )


def _roles() -> list[tuple[str, str]]:
    return [(role.value, role_name(role)) for role in Role]


def _handout(request: Request, service: WebService, visitor: Visitor, made: PasswordHandout) -> HTMLResponse:
    return service.render(
        request,
        "staff/admin_password_handout.html.j2",
        visitor=visitor,
        handout=made,
        site=service.site(request),
    )


def _account(service: WebService, person_id: int) -> Account:
    found = people.account(service.store, person_id)
    if found is None:
        raise not_found()
    return found


def _at(found: Account) -> str:
    return f"{_PLACE}/{found.id}"
