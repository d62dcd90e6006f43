"""What people are mailed, and what not: told once, to whom it concerns, with what holds when it is sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.delivery.mail.daily_summaries import queue_summaries
from grader.delivery.mail.links import off_token, read_off_token
from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.courses import announcements, courses, enrolments, exams, extensions
from grader.store.courses.course_time_zone import set_time_zone
from grader.store.courses.extensions import Extension
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.courses.learner_groups import make_group, put_into_group
from grader.store.courses.task_terms import change_terms
from grader.store.delivery import mail_requests
from grader.store.delivery.delivery_channels import note_channel
from grader.store.grading import regrades, reviews
from grader.store.grading.comment_replies import reply
from grader.store.grading.regrade_requests import ask_for_regrade, decide_request
from grader.store.people import invitations
from grader.store.people.mailboxes import choose, mail_address, note_bounced, set_address
from grader.store.people.personal_invitations import PersonalInvitation, invite_each, personal_invitations
from grader.store.tables.mail import MailKind
from grader.store.tables.person import Role
from grader.store.tables.regrade_request import RequestDecision
from tests.delivery.conftest import SECRET, SITE, MailSite, html
from tests.store.campus import VERSION, verdict_of

NOW = datetime.now(UTC)


def subjects(site: MailSite) -> list[str]:
    return [f"{to.split()[0]}: {subject}" for to, subject, _ in site.texts()]


def test_a_verdict_is_mailed_to_whoever_asked_for_it(mail_site: MailSite) -> None:
    campus = mail_site.campus
    choose(mail_site.store, campus.anna, {MailKind.VERDICT: True})
    attempt = campus.judge(campus.anna, "print('my own words')\n", verdict_of(points=92.0))
    campus.judge(campus.ben)
    mail_site.collected()
    ((to, subject, text),) = mail_site.texts()
    assert (to, subject) == ("Anna <anna@example.org>", "ddp-toy: judged (Distributed training)")
    assert "Accepted: 92 of 100" in text
    assert f"{SITE}/attempts/{attempt}" in text
    assert "my own words" not in str(mail_site.inbox.mails[0])


def test_held_then_decided(mail_site: MailSite) -> None:
    campus = mail_site.campus
    attempt = campus.judge(campus.anna, grade=verdict_of(Verdict.HELD))
    mail_site.collected()
    reviews.override(mail_site.store, attempt, Verdict.ACCEPTED, 80.0, "all is well", actor_id=campus.ines)
    mail_site.collected()
    assert subjects(mail_site) == [
        "Anna: ddp-toy: an instructor looks at your attempt (Distributed training)",
        "Anna: ddp-toy: decided (Distributed training)",
    ]
    assert "Accepted by an instructor: 80 of 100" in mail_site.texts()[1][2]
    assert "all is well" not in mail_site.texts()[1][2], "the reason stands in the audit"


def test_what_was_decided_before_the_mail_went_out_is_told_as_decided_alone(mail_site: MailSite) -> None:
    campus = mail_site.campus
    attempt = campus.judge(campus.anna, grade=verdict_of(Verdict.HELD))
    reviews.override(mail_site.store, attempt, Verdict.ACCEPTED, 80.0, "fine", actor_id=campus.ines)
    mail_site.collected()
    assert subjects(mail_site) == ["Anna: ddp-toy: decided (Distributed training)"]


def test_many_comments_within_minutes_are_one_mail(mail_site: MailSite) -> None:
    campus = mail_site.campus
    attempt = campus.judge(campus.anna)
    for number in range(5):
        reviews.comment(
            mail_site.store, attempt, f"Remark <{number}>", author_id=campus.ines, path="train.py", line=3
        )
    reviews.comment(mail_site.store, attempt, "Thank you", author_id=campus.anna)
    mail_site.collected()
    ((_, subject, text),) = mail_site.texts()
    assert subject == "5 comments on your work (Distributed training)"
    assert "Ines at train.py, line 3" in text
    assert all(f"> Remark <{number}>" in text for number in range(5))
    assert "Thank you" not in text, "their own"
    assert "Remark &lt;0&gt;" in html(mail_site.inbox.mails[0])


def test_a_regrade_is_told_when_it_is_applied_and_in_one_mail(mail_site: MailSite) -> None:
    campus = mail_site.campus
    choose(mail_site.store, campus.anna, {MailKind.VERDICT: True})
    attempts = [campus.judge(campus.anna, grade=verdict_of(points=50.0)) for _ in range(3)]
    mail_site.collected()
    mail_site.inbox.mails.clear()
    batch = regrades.queue_new_runs(mail_site.store, attempts, actor_id=campus.ines)
    from grader.store.attempts import attempt_endings

    for _ in attempts:
        claimed = campus.claim()
        attempt_endings.finish(
            mail_site.store, claimed.attempt_id, claimed.lease_token, verdict_of(points=70.0)
        )
    mail_site.collected()
    assert mail_site.inbox.mails == [], "not applied"
    regrades.apply(mail_site.store, batch, actor_id=campus.ines)
    mail_site.collected()
    ((_, subject, text),) = mail_site.texts()
    assert subject == "3 attempts judged (Distributed training)"
    assert text.count("70 of 100") == 3


def test_nothing_is_told_before_a_task_says_how_one_did(mail_site: MailSite) -> None:
    campus = mail_site.campus
    choose(mail_site.store, campus.anna, {MailKind.VERDICT: True})
    campus.set_task(due_at=NOW + timedelta(hours=1), hidden_until_due=True)
    mail_site.collected()
    mail_site.inbox.mails.clear()
    open_task = campus.set_task("ddp-open")
    hidden = campus.judge(campus.anna)
    shown = campus.judge(campus.anna, task=open_task)
    for attempt in (shown, hidden):
        reviews.comment(mail_site.store, attempt, f"Remark {attempt}", author_id=campus.ines)
    mail_site.collected()
    assert subjects(mail_site) == [
        "Anna: ddp-open: judged (Distributed training)",
        "Anna: ddp-open: a comment on your work (Distributed training)",
    ]
    campus.set_task(due_at=NOW - timedelta(hours=1), hidden_until_due=True)
    from sqlalchemy import update

    from grader.store.clock import database_now
    from grader.store.tables import DeliveryRow

    with mail_site.store.write() as connection:
        connection.execute(update(DeliveryRow).values(due_at=database_now()))
    mail_site.deliver()
    assert sorted(subjects(mail_site)[2:]) == [
        "Anna: ddp-toy: a comment on your work (Distributed training)",
        "Anna: ddp-toy: judged (Distributed training)",
        "Anna: ddp-toy: other dates (Distributed training)",
        "Ben: ddp-toy: other dates (Distributed training)",
    ]


def test_dates_are_told_in_the_courses_zone_and_once_for_several_tasks(mail_site: MailSite) -> None:
    campus = mail_site.campus
    set_time_zone(mail_site.store, campus.course, "Europe/Berlin", actor_id=None)
    other = campus.set_task("ddp-other")
    due = datetime(2031, 1, 31, 17, 0, tzinfo=UTC)
    extensions.extend(
        mail_site.store, campus.task, Extension(due), person_ids=[campus.anna], actor_id=campus.ines
    )
    extensions.extend(mail_site.store, other, Extension(due), person_ids=[campus.anna], actor_id=campus.ines)
    mail_site.collected()
    ((to, subject, text),) = mail_site.texts()
    assert (to.split()[0], subject) == ("Anna", "Other dates of 2 tasks (Distributed training)")
    assert text.count("due 31 Jan 2031, 18:00 (Europe/Berlin), moved for you") == 2


def test_other_dates_of_a_task_are_told_to_all_and_of_a_draft_to_nobody(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    campus.set_task(due_at=NOW + timedelta(days=3))
    campus.set_task(due_at=NOW + timedelta(days=3), weight=2.0)
    terms = courses.TaskTerms("Draft", VERSION)
    courses.set_task(store, campus.course, "draft", "cpu", terms, draft=True)
    dated = courses.TaskTerms("Draft", VERSION, due_at=NOW)
    courses.set_task(store, campus.course, "draft", "cpu", dated)
    mail_site.collected()
    assert subjects(mail_site) == [
        "Anna: ddp-toy: other dates (Distributed training)",
        "Ben: ddp-toy: other dates (Distributed training)",
    ]


def test_an_announcement_reaches_all_who_want_it_but_its_author(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    choose(store, campus.ben, {MailKind.ANNOUNCEMENT: False})
    announcements.announce(
        store, campus.course, "No lecture", "See **you** <b>soon</b>", author_id=campus.ines
    )
    gone = announcements.announce(store, campus.course, "A mistake", "…", author_id=campus.ines)
    announcements.remove_announcement(store, campus.course, gone, actor_id=campus.ines)
    mail_site.collected()
    assert subjects(mail_site) == ["Anna: No lecture (Distributed training)"]
    body = html(mail_site.inbox.mails[0])
    assert "<strong>you</strong>" in body
    assert "&lt;b&gt;soon" in body


def test_staff_is_told_once_a_day_what_waits_in_the_courses_own_morning(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    set_time_zone(store, campus.course, "America/New_York", actor_id=None)
    noon_utc = datetime(2031, 1, 31, 12, 10, tzinfo=UTC)
    assert queue_summaries(store, noon_utc, hour=7) == 0, "nothing waits"
    campus.judge(campus.anna, grade=verdict_of(Verdict.HELD))
    assert queue_summaries(store, noon_utc - timedelta(hours=5), hour=7) == 0, "it is night there"
    assert queue_summaries(store, noon_utc, hour=7) == 1
    assert queue_summaries(store, noon_utc + timedelta(minutes=20), hour=7) == 0, "told already"
    mail_site.collected()
    told = [one for one in mail_site.texts() if one[0].startswith("Ines")]
    ((_, subject, text),) = told
    assert subject == "What waits in Distributed training"
    assert "1 attempt held for review, the first since" in text


def test_an_invitation_goes_to_each_address_once(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    code = invitations.invite(store, campus.course, role=Role.LEARNER, actor_id=campus.ines)
    wanted = ["new@example.org", "New@example.org ", "other@example.org"]
    assert mail_requests.mail_invitations(store, code, wanted, actor_id=campus.ines) == 2
    assert mail_requests.mail_invitations(store, code, wanted, actor_id=campus.ines) == 0
    mail_site.deliver()
    (first, _) = mail_site.texts()
    assert first[0] == "new@example.org"
    assert f"{SITE}/join/{code}" in first[2]
    assert "List-Unsubscribe" not in mail_site.inbox.mails[0]
    with pytest.raises(UsageError, match="no mail address"):
        mail_requests.mail_invitations(store, code, ["ok@x.org", "a@b\nBcc: c@d"], actor_id=campus.ines)


def test_who_is_gone_disabled_or_has_left_is_mailed_nothing(mail_site: MailSite) -> None:
    from grader.store.people import people

    campus, store = mail_site.campus, mail_site.store
    carl = campus.person("carl")
    set_address(store, carl, "carl@example.org", actor_id=None)
    announcements.announce(store, campus.course, "Hello", "all", author_id=campus.ines)
    enrolments.leave(store, campus.course, campus.anna, actor_id=None)
    people.set_enabled(store, campus.ben, False, actor_id=None)
    set_address(store, carl, None, actor_id=None)
    mail_site.collected()
    assert mail_site.inbox.mails == []


def test_an_erased_person_leaves_no_mail_behind(mail_site: MailSite) -> None:
    from sqlalchemy import select

    from grader.store.files import open_files
    from grader.store.people.erasure import erase
    from grader.store.tables import BouncedAddressRow, DeliveryRow

    campus, store = mail_site.campus, mail_site.store
    note_bounced(store, "anna@example.org", "550")
    set_address(store, campus.anna, "anna@example.org", actor_id=None)
    reviews.comment(store, campus.judge(campus.anna), "Hm.", author_id=campus.ines)
    note_bounced(store, "anna@example.org", "550")
    erase(store, open_files(store, "database", Path()), campus.anna, actor_id=None)
    with store.read() as connection:
        assert connection.execute(select(DeliveryRow.receiver)).all() == []
        assert connection.execute(select(BouncedAddressRow.address)).all() == []


def test_where_mail_is_not_set_up_nothing_is_queued(mail_site: MailSite) -> None:
    note_channel(mail_site.store, "mail", set_up=False, problem="GRADER_SMTP_URL")
    campus = mail_site.campus
    reviews.comment(mail_site.store, campus.judge(campus.anna), "Hm.", author_id=campus.ines)
    with pytest.raises(UsageError, match="sends no mail"):
        mail_requests.request_confirmation(mail_site.store, campus.anna, "a@example.org")
    note_channel(mail_site.store, "mail", set_up=True, problem=None)
    mail_site.collected()
    assert mail_site.inbox.mails == []


def test_hostile_names_end_no_header(mail_site: MailSite) -> None:
    from sqlalchemy import update

    from grader.store.tables import CourseRow, PersonRow

    campus, store = mail_site.campus, mail_site.store
    with store.write() as connection:
        connection.execute(update(PersonRow).values(name='A\r\nBcc: x@evil.example\r\n"<q@evil.example>'))
        connection.execute(update(CourseRow).values(title="T\r\nBcc: y@evil.example\r\n\r\nbody" + "x" * 150))
    announcements.announce(store, campus.course, "Hi\r\nBcc: z@evil.example", "text", author_id=campus.ines)
    mail_site.collected()
    assert len(mail_site.inbox.mails) == 2
    for message in mail_site.inbox.mails:
        assert "Bcc" not in message
        assert message["To"].addresses[0].addr_spec in ("anna@example.org", "ben@example.org")
        assert len(message["To"].addresses) == 1


def test_the_way_out_is_signed_and_for_one_kind(mail_site: MailSite) -> None:
    campus = mail_site.campus
    reviews.comment(mail_site.store, campus.judge(campus.anna), "Hm.", author_id=campus.ines)
    mail_site.collected()
    (message,) = mail_site.inbox.mails
    token = off_token(SECRET, campus.anna, MailKind.COMMENT)
    assert message["List-Unsubscribe"] == f"<{SITE}/api/v1/mail/off/{token}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert read_off_token(SECRET, token) == (campus.anna, MailKind.COMMENT)
    assert read_off_token("t" * 40, token) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a@",
        "@b.c",
        "a b@c.d",
        "a@b c",
        "a@b\nc",
        "a@-b.c",
        "a@b..c",
        "ä@b.c",
        "a,b@c.d",
        "<a@b.c>",
        "a@b.c\0",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        mail_address(text)


def test_addresses_are_kept_in_lower_case() -> None:
    assert mail_address(" Anna.B+x@Example.ORG ") == "anna.b+x@example.org"


def test_answers_to_comments_go_to_the_other_side(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    attempt = campus.judge(campus.anna)
    made = reviews.comment(store, attempt, "Why twice?", author_id=campus.ines)
    mail_site.collected()
    mail_site.inbox.mails.clear()
    reply(store, attempt, made, "It was slow.", author_id=campus.anna)
    queue_summaries(store, datetime(2031, 1, 31, 7, 10, tzinfo=UTC), hour=7)
    mail_site.collected()
    ((to, _, text),) = mail_site.texts()
    assert to.startswith("Ines")
    assert "1 answer to comments" in text
    assert "It was slow" not in text, "that is counted, not told"
    reply(store, attempt, made, "I see.", author_id=campus.ines)
    mail_site.collected()
    assert subjects(mail_site)[1:] == ["Anna: ddp-toy: a comment on your work (Distributed training)"]
    assert "> I see." in mail_site.texts()[1][2]


def test_what_became_of_a_request_reaches_all_of_a_group(mail_site: MailSite) -> None:
    campus, store, by = mail_site.campus, mail_site.store, mail_site.campus.ines
    set_grading_rules(store, campus.course, GradingRules(regrade_days=7), actor_id=by)
    group = make_group(store, campus.course, "Blue", actor_id=by)
    for one in (campus.anna, campus.ben):
        put_into_group(store, campus.course, group, one, actor_id=by)
    attempt = campus.judge(campus.anna)
    asked = ask_for_regrade(store, attempt, "Look again", person_id=campus.anna)
    queue_summaries(store, datetime(2031, 1, 31, 7, 10, tzinfo=UTC), hour=7)
    mail_site.collected()
    ((to, _, text),) = mail_site.texts()
    assert (to.split()[0], "1 request that somebody looks at a grade again" in text) == ("Ines", True)
    reviews.override(store, attempt, Verdict.ACCEPTED, 88.0, "so", actor_id=by)
    decide_request(store, asked, RequestDecision.CHANGED, "You are right.", actor_id=by)
    mail_site.collected()
    told = mail_site.texts()[1:]
    assert sorted(to.split()[0] for to, _, _ in told) == ["Anna", "Ben"]
    assert all("88 of 100" in text and "> You are right." in text for _, _, text in told)


def test_how_an_exam_went_is_mailed_when_it_is_released(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    choose(store, campus.anna, {MailKind.VERDICT: True})
    campus.set_task(due_at=NOW + timedelta(hours=1), exam_minutes=60)
    mail_site.collected()
    mail_site.inbox.mails.clear()
    exams.begin(store, campus.task, campus.anna)
    attempts = [campus.judge(campus.anna) for _ in range(2)]
    mail_site.collected()
    assert mail_site.inbox.mails == []
    assert exams.release_feedback(store, campus.course, campus.task, True, actor_id=campus.ines)
    mail_site.deliver()
    ((to, subject, text),) = mail_site.texts()
    assert (to.split()[0], subject) == ("Anna", "2 attempts judged (Distributed training)")
    assert all(f"{SITE}/attempts/{one}" in text for one in attempts)


def test_dates_that_are_moved_on_a_tasks_page_are_told(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    task = courses.course_task(store, campus.task)
    assert task is not None
    change_terms(store, task, replace(task.terms, weight=3.0), actor_id=campus.ines)
    mail_site.collected()
    assert mail_site.inbox.mails == [], "its dates are the same"
    change_terms(store, task, replace(task.terms, due_at=NOW + timedelta(days=3)), actor_id=campus.ines)
    mail_site.collected()
    assert [one.partition(":")[0] for one in subjects(mail_site)] == ["Anna", "Ben"]


def test_those_of_a_list_are_mailed_their_own_link_once(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    listed = [
        PersonalInvitation(name, name.title(), Role.LEARNER, address, None, None)
        for name, address in (("mia", "mia@example.org"), ("leo", None), ("kim", "kim@@example.org"))
    ]
    with store.write() as connection:
        invite_each(connection, campus.course, listed, actor_id=campus.ines)
    assert mail_requests.mail_each(store, campus.course, actor_id=campus.ines) == 1
    assert mail_requests.mail_each(store, campus.course, actor_id=campus.ines) == 0
    mail_site.deliver()
    ((to, _, text),) = mail_site.texts()
    code = next(one.code for one in personal_invitations(store, campus.course) if one.login == "mia")
    assert to == "mia@example.org"
    assert f"{SITE}/join/{code}" in text
