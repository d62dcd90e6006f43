"""Mails in the language of whoever gets them, and in the site's where nobody knows theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from grader.delivery.channels.mail import missing
from grader.store.courses import extensions
from grader.store.courses.course_time_zone import set_time_zone
from grader.store.courses.extensions import Extension
from grader.store.delivery import mail_requests
from grader.store.grading import reviews
from grader.store.people import invitations
from grader.store.people.mailboxes import choose, mailbox, set_language
from grader.store.tables.mail import MailKind
from grader.store.tables.person import Role
from tests.delivery.conftest import MailSite, html
from tests.store.campus import verdict_of

SINCE = datetime(2031, 1, 31, 17, 0, tzinfo=UTC)


def test_a_german_learner_is_told_in_german_and_others_in_english(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    set_language(store, campus.anna, "de")
    for one in (campus.anna, campus.ben):
        choose(store, one, {MailKind.VERDICT: True})
        campus.judge(one, grade=verdict_of(points=92.5))
    mail_site.collected()
    said = {to.split()[0]: (subject, text) for to, subject, text in mail_site.texts()}
    subject, text = said["Anna"]
    assert subject == "ddp-toy: beurteilt (Distributed training)"
    assert "Hallo Anna," in text
    assert "ddp-toy: Angenommen: 92,5 von 100" in text
    assert "Auswählen, welche E-Mails du bekommst" in text
    assert said["Ben"][0] == "ddp-toy: judged (Distributed training)"
    assert "Accepted: 92.5 of 100" in said["Ben"][1]
    (german,) = [one for one in mail_site.inbox.mails if one["Content-Language"] == "de"]
    assert '<html lang="de">' in html(german)
    assert "dein Versuch wurde beurteilt:" in html(german)


def test_moments_are_written_as_the_language_does_in_the_courses_zone(mail_site: MailSite) -> None:
    campus, store = mail_site.campus, mail_site.store
    set_language(store, campus.anna, "de")
    set_time_zone(store, campus.course, "Europe/Berlin", actor_id=None)
    extensions.extend(store, campus.task, Extension(SINCE), person_ids=[campus.anna], actor_id=campus.ines)
    mail_site.collected()
    ((_, _, text),) = mail_site.texts()
    assert "fällig am 31.01.2031, 18:00 (Europe/Berlin), für dich verschoben" in text


def test_whose_language_nobody_knows_is_mailed_in_the_sites(mail_site: MailSite) -> None:
    campus, store, context = mail_site.campus, mail_site.store, mail_site.context
    set_language(store, campus.ben, "en")
    mail_site.context = replace(context, settings=replace(context.settings, mail_language="de"))
    code = invitations.invite(store, campus.course, role=Role.ASSISTANT, actor_id=campus.ines)
    mail_requests.mail_invitations(store, code, ["new@example.org"], actor_id=campus.ines)
    for one in (campus.anna, campus.ben):
        reviews.comment(store, campus.judge(one), "Hm.", author_id=campus.ines)
    mail_site.collected()
    said = {to.split()[0]: (subject, text) for to, subject, text in mail_site.texts()}
    assert said["new@example.org"][0] == "Deine Einladung: Distributed training"
    assert "Ines lädt dich ein, in diesem Kurs als Assistenz mitzuarbeiten" in said["new@example.org"][1]
    assert said["Anna"][0] == "ddp-toy: ein Kommentar zu deiner Arbeit (Distributed training)"
    assert said["Ben"][0] == "ddp-toy: a comment on your work (Distributed training)"


def test_a_language_without_a_catalog_is_refused(mail_site: MailSite) -> None:
    settings = replace(mail_site.context.settings, mail_language="xx")
    assert "GRADER_MAIL_LANGUAGE is one of: en, de" in missing(settings)


def test_a_language_that_was_chosen_outlasts_the_next_sign_in(mail_site: MailSite) -> None:
    for code, unless_known in (("de", True), ("en", True), ("en", False)):
        set_language(mail_site.store, mail_site.campus.anna, code, unless_known=unless_known)
        box = mailbox(mail_site.store, mail_site.campus.anna)
        assert box is not None
        assert box.language == ("en" if not unless_known else "de")
