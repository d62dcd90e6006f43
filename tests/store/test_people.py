"""Who gets in: passwords, tokens, invitations, and what becomes of their data when they are erased."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, text

from grader.errors import UsageError
from grader.store import events
from grader.store.attempts import attempt_endings, attempts
from grader.store.courses import enrolments
from grader.store.database import Store
from grader.store.files import DatabaseFiles, FileMissingError
from grader.store.grading import certificates, grades, reviews
from grader.store.people import (
    erasure,
    invitations,
    one_time_passwords,
    own_courses,
    people,
    sessions,
    tokens,
)
from grader.store.people.invitations import InvitationResult
from grader.store.people.one_time_passwords import NewPassword
from grader.store.tables import ApiTokenRow, EndedSessionRow, PersonRow
from grader.store.tables.api_token import Scope
from grader.store.tables.person import Role
from tests.store.campus import Campus, verdict_of
from tests.store.test_schema import rows

GOOD = "correct horse battery"


@pytest.mark.one_database
def test_a_password_opens_its_account_only(store: Store) -> None:
    person = people.add_person(store, " Anna ", "Anna", password=GOOD, must_change=True)
    opened = people.check_password(store, "ANNA", GOOD)
    assert opened is not None
    assert (opened.id, opened.must_change, opened.role) == (person, True, Role.LEARNER)
    for login, password in (
        ("anna", GOOD + "x"),
        ("anna", ""),
        ("ben", GOOD),
        ("anna", "x" * 10_000),
        ("a\0", "\ud800"),
    ):
        assert people.check_password(store, login, password) is None
    with store.read() as connection:
        (hashed,) = connection.execute(select(PersonRow.password_hash)).scalars()
    assert hashed is not None
    assert hashed.startswith("$argon2id$")
    assert GOOD not in hashed


@pytest.mark.one_database
def test_changing_a_password_ends_sessions_and_the_old_one(store: Store) -> None:
    person = people.add_person(store, "anna", "Anna", password=GOOD, must_change=True)
    before = people.account(store, person)
    assert before is not None
    people.set_password(store, person, GOOD[::-1], must_change=False, actor_id=person)
    assert people.check_password(store, "anna", GOOD) is None
    opened = people.check_password(store, "anna", GOOD[::-1])
    assert opened is not None
    assert (opened.session_epoch, opened.must_change) == (before.session_epoch + 1, False)
    people.set_enabled(store, person, False, actor_id=None)
    assert people.check_password(store, "anna", GOOD[::-1]) is None
    with pytest.raises(UsageError, match="10 to 256"):
        people.set_password(store, person, "short", must_change=False, actor_id=None)
    with pytest.raises(UsageError, match="type again"):
        people.set_password(store, person, "\ud800" * 12, must_change=False, actor_id=None)
    with pytest.raises(UsageError, match="no account"):
        people.set_password(store, 4711, GOOD, must_change=False, actor_id=None)


def test_logins_are_unique_and_without_a_password_none_signs_in(store: Store) -> None:
    people.add_person(store, "bot", "Bot", Role.CI)
    with pytest.raises(UsageError, match="taken"):
        people.add_person(store, "BOT", "Other")
    with pytest.raises(UsageError, match="login"):
        people.add_person(store, "  ", "Nobody")
    assert people.check_password(store, "bot", "") is None
    assert not people.any_admin(store)
    person = people.account_by_login(store, "bot")
    assert person is not None
    people.set_role(store, person.id, Role.ADMIN, actor_id=None)
    assert people.any_admin(store)
    changed = people.account(store, person.id)
    assert changed is not None
    assert (changed.role, changed.session_epoch) == (Role.ADMIN, person.session_epoch + 1)


def test_one_time_passwords_are_long_enough_and_never_alike() -> None:
    made = {people.one_time_password() for _ in range(50)}
    assert len(made) == 50
    assert all(len(password) >= people.MIN_PASSWORD for password in made)


def test_a_token_opens_as_far_as_its_scope_until_it_ends(campus: Campus) -> None:
    store = campus.store
    token = tokens.issue_token(
        store, campus.anna, "laptop", Scope.SUBMIT, lifetime_s=3600, actor_id=campus.anna
    )
    (use,) = tokens.check_tokens(store, [token])
    assert use is not None
    assert use.account.id == campus.anna
    assert use.scope is Scope.SUBMIT
    assert tokens.check_tokens(store, [token[:-1]]) == [None]
    assert tokens.check_tokens(store, ["\ud800\0"]) == [None]
    (facts,) = tokens.tokens_of(store, campus.anna)
    assert facts.used_at is not None
    assert token.startswith(facts.prefix)
    with store.read() as connection:
        assert token not in repr(connection.execute(select(ApiTokenRow.__table__)).all())
    assert not tokens.revoke_token(store, campus.ben, facts.id, actor_id=campus.ben), "it is not his"
    assert tokens.revoke_token(store, campus.anna, facts.id, actor_id=campus.anna)
    assert tokens.check_tokens(store, [token]) == [None]
    short = tokens.issue_token(store, campus.anna, "ci", Scope.READ, lifetime_s=0.2, actor_id=None)
    time.sleep(0.4)
    assert tokens.check_tokens(store, [short]) == [None]
    lasting = tokens.issue_token(store, campus.anna, "ci", Scope.READ, lifetime_s=None, actor_id=None)
    people.set_enabled(store, campus.anna, False, actor_id=None)
    assert tokens.check_tokens(store, [lasting]) == [None]


def test_tokens_end_with_the_password(campus: Campus) -> None:
    """Whoever has seen a password may have made a token with it."""
    store = campus.store

    def handed_out(person: int) -> dict[int, NewPassword]:
        """Another one-time password, as instructors give it to a whole class."""
        return {person: NewPassword(people.one_time_hash(people.one_time_password()), "sealed")}

    endings: list[Callable[[int], object]] = [
        lambda one: people.set_password(store, one, GOOD, must_change=True, actor_id=None),
        lambda one: one_time_passwords.reissue(store, campus.course, handed_out(one), actor_id=campus.ines),
        lambda one: people.set_password(store, one, GOOD, must_change=False, actor_id=one),
        lambda one: people.end_sessions(store, one, actor_id=one),
    ]
    beside = tokens.issue_token(store, campus.ben, "laptop", Scope.READ, lifetime_s=None, actor_id=None)
    for number, end in enumerate(endings):
        made = [
            tokens.issue_token(store, campus.anna, name, Scope.READ, lifetime_s=None, actor_id=None)
            for name in ("laptop", "CI")
        ]
        assert all(tokens.check_tokens(store, made))
        before = people.account(store, campus.anna)
        end(campus.anna)
        after = people.account(store, campus.anna)
        assert tokens.check_tokens(store, made) == [None, None], number
        assert before is not None
        assert after is not None
        assert after.session_epoch > before.session_epoch, number
    assert all(tokens.check_tokens(store, [beside])), "nobody else's"


def test_a_session_ends_by_itself_and_the_others_go_on(campus: Campus) -> None:
    store = campus.store
    for _ in range(2):
        sessions.end_session(store, "first", lifetime_s=60.0)
    anna = people.account(store, campus.anna)
    assert anna is not None
    epoch = anna.session_epoch
    assert sessions.account_in_session(store, campus.anna, epoch, "first") is None
    found = sessions.account_in_session(store, campus.anna, epoch, "second")
    assert found is not None
    assert found.login == "anna"
    assert sessions.account_in_session(store, campus.anna, epoch + 1, "second") is None
    people.set_enabled(store, campus.anna, False, actor_id=None)
    assert sessions.account_in_session(store, campus.anna, epoch + 1, "second") is None


def test_ended_sessions_are_kept_no_longer_than_their_cookies_hold(campus: Campus) -> None:
    sessions.end_session(campus.store, "long ago", lifetime_s=-1.0)
    sessions.end_session(campus.store, "just now", lifetime_s=60.0)
    with campus.store.read() as connection:
        assert connection.execute(select(func.count()).select_from(EndedSessionRow)).scalar_one() == 1


def test_invitations_let_in_as_often_as_they_say(campus: Campus) -> None:
    store = campus.store
    code = invitations.invite(store, campus.course, max_uses=2, actor_id=campus.ines)
    newcomers = [people.add_person(store, f"new{number}", "New") for number in range(6)]
    spelt = f" {code[:4].lower()}-{code[4:]} "
    with ThreadPoolExecutor(6) as pool:
        entries = list(pool.map(lambda person: invitations.redeem(store, spelt, person).result, newcomers))
    assert sorted(entries) == sorted([InvitationResult.ENTERED] * 2 + [InvitationResult.USED_UP] * 4)
    assert invitations.redeem(store, code, campus.ines) == invitations.Redemption(
        InvitationResult.ALREADY_IN, campus.course
    )
    roles = {one.login: one.role for one in enrolments.participants(store, campus.course)}
    assert roles["ines"] is Role.INSTRUCTOR
    assert len(roles) == 5
    assert invitations.redeem(store, "NOSUCH", newcomers[0]).result is InvitationResult.UNKNOWN
    old = invitations.invite(store, campus.course, lifetime_s=-1.0, actor_id=campus.ines)
    assert invitations.redeem(store, old, newcomers[0]).result is InvitationResult.EXPIRED
    assert invitations.revoke_invitation(store, code, actor_id=campus.ines)
    assert invitations.redeem(store, code, newcomers[0]).result is InvitationResult.UNKNOWN


def test_roles_of_a_course(campus: Campus) -> None:
    with pytest.raises(UsageError, match="learner, assistant, observer or instructor"):
        enrolments.enrol(campus.store, campus.course, campus.anna, Role.ADMIN)
    with pytest.raises(UsageError, match="no course"):
        enrolments.enrol(campus.store, 4711, campus.anna)
    enrolments.enrol(campus.store, campus.course, campus.anna, Role.INSTRUCTOR)
    (own,) = own_courses.courses_of(campus.store, campus.anna)
    assert (own.name, own.role) == ("ddp", Role.INSTRUCTOR)


def test_erasure_takes_everything_of_one_and_nothing_of_others(campus: Campus) -> None:
    store, files = campus.store, DatabaseFiles(campus.store)
    shared, own = files.put(b"shared evidence"), files.put(b"annas evidence")

    def finished(person: int, source: str, *blobs: str, **options: bool) -> int:
        attempt_id = campus.queue(person, source, **options)
        claimed = campus.claim()
        left = [attempt_endings.StoredFile(f"f{number}", blob, 1) for number, blob in enumerate(blobs)]
        attempt_endings.finish(store, attempt_id, claimed.lease_token, verdict_of(codes=("DATA002",)), left)
        return attempt_id

    finished(campus.anna, "both = 1\n", shared)
    bens = campus.hand_in(campus.ben, "both = 1\n")
    finished(campus.anna, "secret_of_anna = 1\n", own)
    running = campus.queue(campus.anna, "still_runs_for_anna = 1\n")
    claimed = campus.claim()
    reviews.comment(store, bens.attempt_id, "by anna", author_id=campus.anna)  # type: ignore[union-attr]
    tokens.issue_token(store, campus.anna, "x", Scope.READ, lifetime_s=None, actor_id=campus.anna)
    for person, reason in ((campus.anna, "Anna copied"), (campus.ben, "not his own")):
        certificates.issue(store, campus.course, person)
        certificates.revoke_certificate(store, campus.course, person, reason, actor_id=campus.ines)
    gone = erasure.erase(store, files, campus.anna, actor_id=campus.ines)
    assert (gone.num_submissions, gone.num_attempts, gone.num_files) == (3, 3, 1)
    left = rows(store)
    everything = repr({table: content for table, content in left.items() if table != "comments"})
    for trace in ("anna", "Anna", "secret_of_anna", "still_runs"):
        assert trace not in everything
    assert {cell for row in left["standings"] for cell in row if cell[0] == "person_id"} == {
        ("person_id", repr(campus.ben))
    }
    assert certificates.revocation_reasons(store, campus.course) == {campus.ben: "not his own"}
    assert files.get(shared) == b"shared evidence"
    with pytest.raises(FileMissingError):
        files.get(own)
    answer = attempts.attempt(store, bens.attempt_id)  # type: ignore[union-attr]
    assert answer is not None
    assert answer.cached_from is None
    assert grades.grade_of(store, answer.id) is not None
    (remark,) = reviews.comments_of(store, answer.id)
    assert remark.author is None
    assert (
        attempt_endings.finish(store, running, claimed.lease_token, verdict_of())
        is attempt_endings.AttemptEnding.STALE
    )
    (event,) = events.audit_of(store, f"person:{campus.anna}")
    assert (event.kind, event.actor_id) == ("erased", campus.ines)
    with pytest.raises(UsageError, match="no person"):
        erasure.erase(store, files, campus.anna, actor_id=None)
    with store.read() as connection:
        if store.is_sqlite:
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
