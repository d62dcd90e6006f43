"""What a mail says: the facts behind what is to be told, as they are when it is sent, in the present language.

What is over, taken back or not to be known yet is left out; where nothing is left, there is no letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grader.report.safe_text import cut
from grader.report.words import banner
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt, attempt
from grader.store.courses import announcements
from grader.store.courses.courses import CourseFacts, course, course_task
from grader.store.database import Store
from grader.store.delivery.deliveries import Delivery
from grader.store.grading.class_statistics import judge_failures
from grader.store.grading.comment_replies import num_unanswered
from grader.store.grading.credits import people_of
from grader.store.grading.gradebook import feedback_opens_at
from grader.store.grading.held_attempts import held_attempts
from grader.store.grading.progress import progress
from grader.store.grading.regrade_requests import num_open_requests, requests_about
from grader.store.grading.reviews import comments_of
from grader.store.people.own_courses import courses_of
from grader.store.queue.queue_overview import num_waiting
from grader.store.tables.mail import MailKind
from grader.translation import gettext, moment_text

_MOST_COMMENT = 2000


@dataclass(frozen=True, slots=True)
class Telling:
    """Whom is told of which course what: `told` holds the payloads, the oldest first."""

    store: Store
    site: str
    person_id: int
    course: CourseFacts
    told: Sequence[dict[str, Any]]


def hidden_for_s(store: Store, delivery: Delivery, person_id: int) -> float:
    """For how many seconds a learner is not to know yet what this one says; 0: they may."""
    number = delivery.payload.get("attempt")
    facts = None if number is None else attempt(store, number)
    if facts is None:
        return 0.0
    # As on the attempt's page: a group is told by the last of its dates.
    people = people_of(store, facts.id) | {person_id}
    dates = (feedback_opens_at(store, facts.course_task_id, one) for one in people)
    opens = max((at for at in dates if at is not None), default=None)
    return 0.0 if opens is None else max(1.0, (opens - datetime.now(UTC)).total_seconds())


def facts_of(kind: MailKind, store: Store, site: str, person_id: int, told: Sequence[Delivery]) -> Any:
    """What the template of a kind needs; None: there is nothing to say any more."""
    number = told[0].course_id
    found = None if number is None else course(store, number)
    if found is None or found.id not in {one.course_id for one in courses_of(store, person_id)}:
        return None
    telling = Telling(store, site, person_id, found, [one.payload for one in told])
    facts = _FACTS[kind](telling)
    return None if facts is None else {"course": found, **facts}


def moment(at: datetime, of: CourseFacts) -> str:
    """A time in the course's zone, with the zone's name."""
    return f"{moment_text(at.astimezone(of.zone))} ({of.time_zone})"


def _outcomes(telling: Telling) -> dict[str, Any] | None:
    found = _attempts(telling)
    results = results_of(telling.store, list(found))
    replies = {payload["attempt"]: payload["request"] for payload in telling.told if "request" in payload}
    items = [
        {
            **_about(telling, facts),
            "reply": _reply(telling.store, number, replies.get(number)),
            "outcome": banner.sentence(results[number], when=lambda at: moment(at, telling.course)),
        }
        for number, facts in found.items()
        if number in results
    ]
    return {"items": items} if items else None


def _reply(store: Store, attempt_id: int, request_id: int | None) -> str:
    """What was answered to a request that somebody looks at the grade again; "": none was decided."""
    said = (one.reply for one in requests_about(store, attempt_id) if one.id == request_id)
    return cut(next(said, None) or "", _MOST_COMMENT)


def _held(telling: Telling) -> dict[str, Any] | None:
    # One that was decided meanwhile is told as such.
    found = _attempts(telling)
    results = results_of(telling.store, list(found))
    items = [
        _about(telling, facts)
        for number, facts in found.items()
        if number in results and results[number].held_since is not None
    ]
    return {"items": items} if items else None


def _comments(telling: Telling) -> dict[str, Any] | None:
    found = _attempts(telling)
    items = []
    for payload in telling.told:
        facts = found.get(payload["attempt"])
        said = [] if facts is None else comments_of(telling.store, facts.id)
        for one in said:
            if facts is not None and one.id == payload["comment"]:
                more = {
                    "author": one.author or gettext("somebody"),
                    "place": _place(one.path or "", one.line),
                    "text": cut(one.text, _MOST_COMMENT),
                }
                items.append({**_about(telling, facts), **more})
    return {"items": items} if items else None


def _place(path: str, line: int | None) -> str:
    return path if line is None else gettext("{path}, line {line}").format(path=path, line=line)


def _dates(telling: Telling) -> dict[str, Any] | None:
    changed = {payload["course_task"] for payload in telling.told}
    items = [
        {
            "task": own.task.terms.title,
            "url": f"{telling.site}/courses/{telling.course.id}/tasks/{own.task.id}",
            "due_at": own.due_at,
            "opens_at": own.task.terms.opens_at,
            "extended": own.extended,
        }
        for own in progress(telling.store, telling.course.id, telling.person_id)
        if own.task.id in changed
    ]
    return {"items": items} if items else None


def _announcements(telling: Telling) -> dict[str, Any] | None:
    wanted = {payload["announcement"] for payload in telling.told}
    there = announcements.announcements_of(telling.store, telling.course.id)
    items = [one for one in there if one.id in wanted]
    return {"items": items} if items else None


def _summary(telling: Telling) -> dict[str, Any] | None:
    return waiting_for_staff(telling.store, telling.course)


def waiting_for_staff(store: Store, of: CourseFacts) -> dict[str, Any] | None:
    """What waits for a course's staff; None: nothing."""
    held = held_attempts(store, of.id)
    facts = {
        "num_held": len(held),
        "num_answered": sum(one.last_word is not None and one.last_word.answered for one in held),
        "num_failed": judge_failures(store, of.id).num_attempts,
        "num_waiting": num_waiting(store, of.id),
        "num_replies": num_unanswered(store, of.id),
        "num_requests": num_open_requests(store, of.id),
    }
    if of.closed or not any(facts.values()):
        return None
    return {**facts, "held_since": min((one.since for one in held), default=None)}


def _attempts(telling: Telling) -> dict[int, StoredAttempt]:
    """The attempts that are told of, once each, as far as they are there and count."""
    numbers = dict.fromkeys(payload["attempt"] for payload in telling.told)
    found = {number: attempt(telling.store, number) for number in numbers}
    return {
        number: facts
        for number, facts in found.items()
        if facts is not None and facts.counts and telling.person_id in people_of(telling.store, facts.id)
    }


def _about(telling: Telling, facts: StoredAttempt) -> dict[str, Any]:
    task = course_task(telling.store, facts.course_task_id)
    title = facts.task if task is None else task.terms.title
    return {"task": title, "url": f"{telling.site}/attempts/{facts.id}"}


_FACTS: dict[MailKind, Callable[[Telling], dict[str, Any] | None]] = {
    MailKind.VERDICT: _outcomes,
    MailKind.HELD: _held,
    MailKind.DECIDED: _outcomes,
    MailKind.COMMENT: _comments,
    MailKind.DATE: _dates,
    MailKind.ANNOUNCEMENT: _announcements,
    MailKind.SUMMARY: _summary,
}
