"""Every kind of page that the site has, in each state that it can show, and who looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from grader.catalog.tasks.task_folders import load_task
from grader.delivery.mail.links import AddressToConfirm, confirm_token, off_token
from grader.store.courses import (
    announcements,
    courses,
    enrolments,
    exams,
    grading_rules,
    learner_groups,
    roster_imports,
)
from grader.store.courses.courses import TaskTerms
from grader.store.courses.extensions import Extension, extend
from grader.store.courses.grading_rules import GradingRules, TaskGrading
from grader.store.courses.roster_imports import RosterLine
from grader.store.delivery import webhooks
from grader.store.delivery.delivery_channels import note_channel
from grader.store.delivery.webhook_events import queue_test
from grader.store.grading import (
    certificates,
    comment_library,
    comment_replies,
    leaderboard,
    regrade_requests,
    regrades,
    reviews,
)
from grader.store.grading.comment_library import LibraryComment
from grader.store.grading.comment_points import CommentChange, CommentPoints
from grader.store.lti import lti_contexts, lti_platforms
from grader.store.lti.lti_contexts import ContextFacts
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.people import invitations, people, tokens
from grader.store.people.mailboxes import set_address
from grader.store.queue import queue
from grader.store.tables.api_token import Scope
from grader.store.tables.mail import MailKind
from grader.store.tables.person import Role
from grader.store.tables.roster_import import Admission
from tests.browser.outcomes import attempts_of_every_outcome
from tests.report import factory
from tests.web.conftest import PASSWORD, School


@dataclass(frozen=True)
class View:
    """A page as somebody sees it.

    Attributes:
        login: who looks; none for a guest.
        act: what is done on the page before it is looked at, for pages that answer a form.
        status: what the address answers.
        unfolded: whether all that can be unfolded is; folded, it is as one finds it.
    """

    login: str | None
    address: str
    act: Callable[[Any], None] | None = None
    status: int = 200
    unfolded: bool = True


def _chosen(selector: str) -> Callable[[Any], None]:
    """Press what the selector names, and wait for the page that answers."""

    def act(page: Any) -> None:
        with page.expect_navigation(wait_until="domcontentloaded"):
            page.click(selector)

    return act


def _filled(fields: dict[str, str], button: str) -> Callable[[Any], None]:
    def act(page: Any) -> None:
        for selector, text in fields.items():
            page.fill(selector, text)
        _chosen(button)(page)

    return act


def _made_instructor(page: Any) -> None:
    page.select_option("#role", "instructor")
    _chosen("form[action$='/role'] button")(page)


def _checked(page: Any) -> None:
    page.click("text=Paste the script instead")
    page.fill("#text", factory.SOURCE)
    page.click("main button:has-text('Check only')")
    page.wait_for_selector("#found .card")


def _typed(script: str, button: str) -> Callable[[Any], None]:
    """Paste a script, and press a button of the form for it."""

    def act(page: Any) -> None:
        page.click("text=Paste the script instead")
        page.fill("#text", script)
        _chosen(f"main button:has-text('{button}')")(page)

    return act


def _remarked(page: Any) -> None:
    """Comment on a line that is not there."""
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    _filled({"#comment #text": "Look here.", "#comment #line": "train.py 12"}, "#comment button")(page)


def _made_admin(page: Any) -> None:
    page.select_option("form[action$='/role'] select", "admin")
    _chosen("form[action$='/role'] button")(page)


def views(school: School) -> dict[str, View]:
    """What the page is → how to see it."""
    found = attempts_of_every_outcome(school)
    return {
        **_guests(school),
        **_learners(school, found),
        **_exam(school),
        **_staff(school, found),
        **_graded_by_people(school, found),
        **_told(school),
        **_platforms(school),
        **_admins(school),
    }


def _guests(school: School) -> dict[str, View]:
    code = invitations.invite(school.store, school.course, actor_id=None)
    return {
        "sign-in": View(None, "/sign-in"),
        "sign-in, refused": View(
            None, "/sign-in", _filled({"#login": "anna", "#password": "wrong"}, "main button")
        ),
        # More than a guest may send.
        "too large": View(
            None, "/sign-in", _filled({"#login": "a" * 80_000, "#password": "wrong"}, "main button")
        ),
        "programming interface": View(None, "/api"),
        "join": View(None, "/join"),
        "join by code": View(None, f"/join/{code}"),
        "join, a name that is taken": View(
            None,
            f"/join/{code}",
            _filled(
                {"#name": "Anna", "#login": "anna", "#password": PASSWORD}, "main form:has(#name) button"
            ),
        ),
        "rule": View(None, "/rules/DATA001"),
        "nothing, to a guest": View(None, "/nothing-here", status=404),
    }


def _learners(school: School, found: dict[str, int]) -> dict[str, View]:
    store, anna = school.store, school.people["anna"]
    tokens.issue_token(store, anna, "laptop", Scope.READ, lifetime_s=86400, actor_id=anna)
    new = people.add_person(store, "new", "Newcomer", password=PASSWORD, must_change=True)
    school.people["new"] = new
    enrolments.enrol(store, school.course, new)
    school.people["empty"] = people.add_person(store, "empty", "Not There Yet", password=PASSWORD)
    certified = certificates.issue(store, school.course, anna)
    if not isinstance(certified, certificates.CertificateFacts):
        raise AssertionError(certified)
    course, code = f"/courses/{school.course}", invitations.invite(store, school.course, actor_id=None)
    task, late = f"{course}/tasks/{school.task}", f"{course}/tasks/{school.tasks['ddp-fashion']}"
    unfolded = ("rejected", "deadlocked", "crashed", "earlier scale", "cancelled", "hidden", "running")
    folded = ("accepted", "overridden", "held", "late")
    cancel = _chosen("main button:has-text('Cancel')")
    make_token = _filled({"#name": "a program"}, "button:has-text('Make it')")
    token_again = _filled({"#name": "laptop"}, "button:has-text('Make it')")
    wrong = {"#current": "not the present one", "#new": PASSWORD, "#again": PASSWORD}
    return {
        "home": View("anna", "/"),
        "home, empty": View("empty", "/"),
        "course": View("anna", course),
        "course, new": View("ben", course),
        "task, history and trend": View("anna", task),
        "task, a check's result": View("ben", late, _checked),
        "task, late": View("anna", late),
        "task, a refused upload": View("ben", task, _typed("def (:\n", "Hand in")),
        **{f"attempt, {name}": View("anna", f"/attempts/{found[name]}") for name in unfolded},
        **{f"attempt, {name}": View("anna", f"/attempts/{found[name]}", unfolded=False) for name in folded},
        **{f"attempt, {name}": View("ben", f"/attempts/{found[name]}") for name in ("waiting", "failed", "unread")},
        "report alone": View("anna", f"/attempts/{found['rejected']}/report"),
        "report alone, deadlocked": View("anna", f"/attempts/{found['deadlocked']}/report"),
        "report alone, earlier scale": View("anna", f"/attempts/{found['earlier scale']}/report"),
        "report alone, overridden": View("anna", f"/attempts/{found['overridden']}/report", unfolded=False),
        "a question before something is done": View("anna", f"/attempts/{found['running']}", cancel),
        "join as oneself": View("empty", f"/join/{code}"),
        "certificate": View(None, f"/certificates/{certified.public_id}"),
        "certificate, own": View("anna", f"/certificates/{certified.public_id}"),
        "account and tokens": View("anna", "/account"),
        "account, a new token": View("anna", "/account", make_token),
        "account, a token of that name": View("anna", "/account", token_again),
        "password": View("anna", "/password"),
        "password, refused": View("anna", "/password", _filled(wrong, "main button")),
        "password, first": View("new", "/password"),
        "nothing": View("anna", "/nothing-here", status=404),
        "nothing, an attempt of nobody's": View("anna", "/attempts/999999", status=404),
        "refused": View("anna", "/admin/people", status=403),
    }  # fmt: skip


def _staff(school: School, found: dict[str, int]) -> dict[str, View]:
    store, ines, at = school.store, school.people["ines"], f"/courses/{school.course}"
    anna, other = school.people["anna"], f"/courses/{school.other_course}"
    later = datetime.now(UTC) + timedelta(days=9)
    extend(store, school.task, Extension(later, reason="ill"), person_ids=[anna], actor_id=ines)
    queue.report_worker(store, "w1.example", ["cpu", "gpu1"], 2)
    queue.pause(store, "gpu1", reason="The GPU is being mended.", actor_id=ines)
    code = invitations.invite(store, school.course, lifetime_s=3600, actor_id=None)
    batch = regrades.queue_new_runs(store, [found["rejected"], found["deadlocked"]], actor_id=ines)
    school.join("tess", Role.ASSISTANT)
    school.join("otis", Role.OBSERVER)
    listed = [RosterLine(2, "mia", "Mia", section="A"), RosterLine(3, "leo", "Leo", email="leo@uni.example")]
    brought = roster_imports.begin(store, school.course, listed, Admission.INVITATION, actor_id=ines)
    pages = (
        *(
            "gradebook",
            "attempts",
            "review",
            "checks",
            "checks?projector=1",
            "stuck",
            "people",
            "people/import",
        ),
        *("invitations", f"invitations/{code}", "settings", f"settings/{school.task}", "extensions", "words"),
        *("extensions/list", "copy"),
        *(
            "similarity",
            "exports",
            "exports/certificates",
            "audit",
            "retention",
            "regrades",
            f"people/{anna}",
        ),
        *("certificates", f"certificates/{anna}", f"people/imports/{brought}"),
    )
    shown = ("gradebook", "attempts", "people", f"people/{anna}", "review")
    list_ = {"#text": "login,name\nzoe,Zoe\nanna,Anna\nbroken\n"}
    more = {"#text": "login,task,extra_attempts\nanna,ddp-toy,2\nnobody,ddp-toy,2\n"}
    return {
        "course, as its instructor": View("ines", at),
        **{place: View("ines", f"{at}/{place}") for place in pages},
        **{f"{place}, empty": View("otto", f"{other}/{place}") for place in pages if place.isalpha()},
        **{
            f"{place}, as {login}": View(login, f"{at}/{place}".rstrip("/"))
            for place in ("", *shown)
            for login in ("tess", "otis")
        },
        "review of an attempt, as an observer": View("otis", f"/attempts/{found['rejected']}/review"),
        "attempt, held, as an observer": View("otis", f"/attempts/{found['held']}", unfolded=False),
        "attempt, held, as staff": View("ines", f"/attempts/{found['held']}"),
        "attempt, overridden, as staff": View("ines", f"/attempts/{found['overridden']}", unfolded=False),
        "attempt, failed, as staff": View("ines", f"/attempts/{found['failed']}"),
        "attempt, running, as staff": View("ines", f"/attempts/{found['running']}"),
        "decision": View("ines", f"/attempts/{found['held']}/review"),
        "review, a comment on no line": View("ines", f"/attempts/{found['rejected']}/review", _remarked),
        "question before a learner teaches": View(
            "ines", f"{at}/people/{anna}", _made_instructor
        ),
        "question before all are judged again": View(
            "ines", f"{at}/attempts", _chosen("button[value=matching]")
        ),
        "review of an attempt": View("ines", f"/attempts/{found['rejected']}/review"),
        "regrade under way": View("ines", f"/regrades/{batch}?all=1"),
        "extensions, what the list gives": View(
            "ines", f"{at}/extensions/list", _filled(more, "button:has-text('Look at it')")
        ),
        "copy, its new dates": View("ines", f"{at}/copy", _chosen("button[value=look]")),
        "question before a course is archived": View(
            "ines", f"{at}/settings", _chosen("form[action$='/archive'] button")
        ),
        "import, what the list does": View(
            "ines", f"{at}/people/import", _filled(list_, "button:has-text('Look at it')")
        ),
        "similarity, pairs": View("ines", f"{at}/similarity", _chosen("main button:has-text('Compare')")),
        "side by side": View("ines", f"{at}/similarity", _side_by_side),
        "one-time passwords": View("ines", f"{at}/people", _chosen("form[action$='/people/passwords'] button")),
        "queue": View("ines", "/queue"),
        "queue, live": View("ines", "/queue?live=1"),
    }  # fmt: skip


def _exam(school: School) -> dict[str, View]:
    """A task that is an exam, which Ben has begun and Anna has not."""
    task, at = load_task("single-gpu"), f"/courses/{school.course}"
    terms = TaskTerms(task.title, task.version, due_at=datetime.now(UTC) + timedelta(days=2), exam_minutes=90)
    made = courses.set_task(school.store, school.course, task.name, "cpu", terms)
    exams.begin(school.store, made, school.people["ben"])
    return {
        "exam, not begun": View("anna", f"{at}/tasks/{made}"),
        "exam, before it begins": View(
            "anna", f"{at}/tasks/{made}", _chosen("form[action$='/begin'] button")
        ),
        "exam, begun": View("ben", f"{at}/tasks/{made}"),
        "exam, watched": View("ines", f"{at}/exams/{made}"),
    }


def _graded_by_people(school: School, found: dict[str, int]) -> dict[str, View]:
    store, course, ines = school.store, school.course, school.people["ines"]
    rules = GradingRules(
        regrade_days=30, forms_groups=True, group_size=3, forum_url="https://talk.example.org"
    )
    grading_rules.set_grading_rules(store, course, rules, actor_id=ines)
    grading_rules.set_grading_rules(store, school.other_course, GradingRules(anonymous=True), actor_id=ines)
    ranked = TaskGrading(leaderboard="points")
    grading_rules.set_task_grading(store, course, school.task, ranked, actor_id=ines)
    leaderboard.set_leaderboard_name(store, course, school.people["anna"], "Owl")
    entry = comment_library.add_entry(
        store, course, LibraryComment("Names", "Name things.", CommentPoints(-2)), actor_id=ines
    )
    attempt = found["rejected"]
    said = reviews.comment(
        store, attempt, "Name things.", author_id=ines, change=CommentChange(CommentPoints(-2), entry)
    )
    comment_replies.reply(store, attempt, said, "Which?", author_id=school.people["anna"])
    regrade_requests.ask_for_regrade(store, attempt, "Look again.", person_id=school.people["anna"])
    learner_groups.form_group(store, course, "Blue", person_id=school.people["new"])
    at = f"/courses/{course}"
    return {
        "what is asked and answered": View("ines", f"{at}/review"),
        "a request to be decided": View("ines", f"/attempts/{attempt}/review"),
        "attempt, with what was said of it": View("anna", f"/attempts/{attempt}"),
        "leaderboard": View("anna", f"{at}/tasks/{school.task}/leaderboard"),
        "group, of none": View("ben", f"{at}/group"),
        "group, a code of none": View("ben", f"{at}/group", _filled({"#code": "none"}, "form[action$='/join'] button")),
        "group, own": View("anna", f"{at}/group", _filled({"#name": "Red"}, "form[action$='/group'] button")),
        **{one: View("ines", f"{at}/{one}") for one in ("grading", "library", f"library/{entry}", "groups")},
        "groups, a list that is none": View(
            "ines", f"{at}/groups", _filled({"#text": "anna"}, "form[action$='/list'] button")
        ),
        "gradebook, anonymous": View("otto", f"/courses/{school.other_course}/gradebook?anonymous=1"),
        "grading, anonymous": View("otto", f"/courses/{school.other_course}/grading"),
    }  # fmt: skip


def _told(school: School) -> dict[str, View]:
    """What goes out: announcements, mail, webhooks."""
    store, course, ines, anna = school.store, school.course, school.people["ines"], school.people["anna"]
    note_channel(store, "mail", set_up=True, problem=None)
    set_address(store, anna, "anna@uni.example", actor_id=None)
    announcements.announce(store, course, "Tuesday’s lab", "In room **2**.", pinned=True, author_id=ines)
    hook = webhooks.add_webhook(
        store, course, "https://tools.example.edu/grades", list(webhooks.CHOSEN), actor_id=ines
    )
    queue_test(store, hook)
    secret, at = school.service.secret, f"/courses/{course}"
    code = invitations.invite(store, course, actor_id=None)
    confirm = confirm_token(secret, AddressToConfirm(anna, "anna@home.example"))
    return {
        "announcements": View("ines", f"{at}/announcements"),
        "announcements, empty": View("otto", f"/courses/{school.other_course}/announcements"),
        "announcements, to an observer": View("otis", f"{at}/announcements"),
        "announcements, to a learner": View("anna", f"{at}/announcements"),
        "webhooks": View("ines", f"{at}/webhooks"),
        "webhooks, empty": View("otto", f"/courses/{school.other_course}/webhooks"),
        "webhook": View("ines", f"{at}/webhooks/{hook.id}"),
        "invitation, by mail": View("ines", f"{at}/invitations/{code}/mail"),
        "mail, another address": View("anna", f"/account/mail/confirm/{confirm}"),
        "mail, the way out": View(None, f"/mail/off/{off_token(secret, anna, MailKind.VERDICT)}"),
    }


def _platforms(school: School) -> dict[str, View]:
    """A learning platform, and a course that is connected to it."""
    store, ada, ines = school.store, school.people["ada"], school.people["ines"]
    host = "https://moodle.example.edu"
    terms = PlatformTerms("Moodle", host, "grader", f"{host}/auth", f"{host}/token", f"{host}/keys")
    platform = lti_platforms.add_platform(store, terms, actor_id=ada)
    facts = ContextFacts(platform, "1", "7", "Training 101", f"{host}/members", None, ())
    lti_contexts.connect(store, facts, school.course, actor_id=ines)
    return {
        "learning platforms": View("ada", "/admin/platforms"),
        "learning platform": View("ada", f"/admin/platforms/{platform}"),
        "course's platform": View("ines", f"/courses/{school.course}/platform"),
        "course's platform, none": View("otto", f"/courses/{school.other_course}/platform"),
        "launch, over": View(None, "/lti/continue", status=403),
        "launch, of nobody": View(None, "/lti/login", status=400),
        "launch, where nothing is chosen": View(None, "/lti/deep-linking"),
        "registration, ended": View(None, "/lti/register", status=403),
    }


def _side_by_side(page: Any) -> None:
    _chosen("main button:has-text('Compare')")(page)
    _chosen("main a:has-text('Side by side')")(page)


def _admins(school: School) -> dict[str, View]:
    anna = school.people["anna"]
    again = _chosen("main button:has-text('One-time password')")
    return {
        "accounts": View("ada", "/admin/people"),
        "an account": View("ada", f"/admin/people/{anna}"),
        "question before somebody is an administrator": View("ada", f"/admin/people/{anna}", _made_admin),
        "an account's password": View("ada", f"/admin/people/{school.people['olga']}", again),
        "all courses": View("ada", "/admin/courses"),
        "course, what goes with it": View("ada", f"/admin/courses/{school.other_course}/delete"),
        "course, as administrator": View("ada", f"/courses/{school.course}"),
    }
