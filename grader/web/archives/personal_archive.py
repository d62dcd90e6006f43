"""All that is kept about one person, as files of an archive for themselves: records, attempts, scripts, reports.

They get what their own pages show: nothing of how an attempt went before they may see it, nothing that is for staff,
and of others only the names of those who commented and decided.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select

from grader.errors import InfraError
from grader.store.attempts.attempts import AttemptFilter, StoredAttempt, attempts
from grader.store.attempts.submissions import source_of
from grader.store.courses.courses import course
from grader.store.database import Store
from grader.store.events import events_of
from grader.store.grading.reviews import comments_of, overrides_of
from grader.store.people.personal_records import personal_records
from grader.store.tables import EventRow
from grader.translation import N_, gettext
from grader.web.archives.folder_names import plain_name
from grader.web.archives.streamed_zip import ArchivedFile
from grader.web.attempt_files import file_of, offered_files
from grader.web.documents.conversions import attempts_out, events_out
from grader.web.security.access import Visitor
from grader.web.security.attempt_feedback import hidden_until
from grader.web.service import WebService

_AT_ONCE = 50
_READ_ME = N_(
    """\
This is what the grader keeps about you, as of when you asked for it. Times are UTC.

records/   what stands in the database about you, a JSON file per table: your account, the courses you take part
           in, tokens (never the token itself), certificates, and whatever else is about you alone
events.json  what was done to your account and enrolments, and what you did yourself
attempts/  a folder per attempt: what it counts as, what happened, comments and decisions, your scripts as you
           handed them in, and the report

Not in it: how an attempt went that you are told only when its task is due; passwords and tokens, of which only
fingerprints are kept; hidden test data; the raw logs of the runs, which hold the task's own files, too: ask your
instructors for those of an attempt. What you wrote about others' work, if you teach, is theirs as well and stays there.
"""
)


def personal_archive(service: WebService, visitor: Visitor) -> Iterator[ArchivedFile]:
    """The files about the visitor, attempt by attempt."""
    store, person_id = service.store, visitor.account.id
    yield ArchivedFile("README.txt", gettext(_READ_ME).encode())
    for name, rows in personal_records(store, person_id):
        yield _json(f"records/{name}.json", rows)
    yield _json("events.json", _own_events(store, person_id))
    names: dict[int, str] = {}
    for one in _own_attempts(service, visitor):
        if one.course_id not in names:
            found = course(store, one.course_id)
            names[one.course_id] = plain_name(found.name if found else f"course-{one.course_id}")
        yield from _attempt_files(service, visitor, one, f"attempts/{names[one.course_id]}")


def _own_attempts(service: WebService, visitor: Visitor) -> Iterator[StoredAttempt]:
    """Those that they may see: a regrade that is not applied is the staff's."""
    before: int | None = None
    while found := attempts(
        service.store, AttemptFilter(person_id=visitor.account.id), before=before, limit=_AT_ONCE
    ):
        yield from (one for one in found if one.counts or visitor.teaches(one.course_id))
        before = found[-1].id


def _attempt_files(
    service: WebService, visitor: Visitor, facts: StoredAttempt, above: str
) -> Iterator[ArchivedFile]:
    store = service.store
    again = f"-judged-again-{facts.id}" if facts.regrade_of else ""
    folder = f"{above}/{plain_name(f'{facts.task}-{facts.profile}')}/attempt-{facts.number:02d}{again}"
    (told,) = attempts_out(service, visitor, [facts])
    yield _json(f"{folder}/attempt.json", told.model_dump(mode="json"), facts.queued_at)
    happened = events_out(service, visitor, facts, _all_events(store, facts.id))
    yield _json(f"{folder}/events.json", [one.model_dump(mode="json") for one in happened])
    source = None if facts.regrade_of else source_of(store, facts.id)
    for file in source.files if source else ():
        yield ArchivedFile(
            f"{folder}/script/{file.path}", file.text.encode("utf-8", "replace"), facts.queued_at
        )
    if hidden_until(service, visitor, facts) is not None:
        return
    said = {
        "comments": [asdict(one) for one in comments_of(store, facts.id)],
        "decisions": [asdict(one) for one in overrides_of(store, facts.id)],
    }
    if any(said.values()):
        yield _json(f"{folder}/reviews.json", said)
    for offered in offered_files(service, facts, staff=False):
        try:
            found = file_of(service, facts, offered.name, staff=False)
        except InfraError as error:
            yield ArchivedFile(
                f"{folder}/{offered.name}.missing.txt",
                gettext("It could not be read: {error}").format(error=error).encode() + b"\n",
            )
        else:
            if found is not None:
                yield ArchivedFile(f"{folder}/{offered.name}", found[0], facts.finished_at)


def _all_events(store: Store, attempt_id: int) -> Iterator[Any]:
    after = 0
    while found := events_of(store, attempt_id, after=after):
        yield from found
        after = found[-1].seq


def _own_events(store: Store, person_id: int) -> list[dict[str, Any]]:
    """What was done about them, and what they did: of the latter only that and when, as it may be about others."""
    statement = (
        select(EventRow.subject, EventRow.kind, EventRow.at, EventRow.actor_id, EventRow.data)
        .where(
            EventRow.attempt_id.is_(None),
            or_(EventRow.subject == f"person:{person_id}", EventRow.actor_id == person_id),
        )
        .order_by(EventRow.id)
    )
    with store.read() as connection:
        rows = connection.execute(statement).all()
    return [
        {
            "at": row.at,
            "kind": row.kind,
            "by_you": row.actor_id == person_id,
            "about": row.data if row.subject == f"person:{person_id}" else None,
        }
        for row in rows
    ]


def _json(path: str, content: Any, at: datetime | None = None) -> ArchivedFile:
    text = json.dumps(content, indent=2, default=_written, ensure_ascii=False)
    return ArchivedFile(path, f"{text}\n".encode("utf-8", "replace"), at)


def _written(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
