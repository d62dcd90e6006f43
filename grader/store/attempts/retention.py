"""Rules that say how long evidence and scripts are kept, and what they delete. Grades, points and findings stay.

The site has a rule, and a course may have a shorter one; days count from an attempt's end, by the database's clock.
What waits for a person stays: held attempts, what a learner asked to be looked at, and whatever is judged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update
from sqlalchemy.orm import aliased

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.files import FileStore
from grader.store.tables import (
    ArtifactRow,
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    DeletedContentRow,
    EventRow,
    GradeRow,
    OverrideRow,
    RegradeRequestRow,
    RetentionRuleRow,
    SourceRow,
)
from grader.store.tables.attempt import FINAL, AttemptState
from grader.store.upsert import upsert

MOST_DAYS = 36_500
BATCH = 100
_DAY_S = 86_400.0
_NO_OUTPUT = {"rank": 0, "stream": "stdout", "text": ""}


class Content(StrEnum):
    """What rules are about."""

    EVIDENCE = "evidence"
    """The run's evidence, and what its ranks printed."""
    SCRIPTS = "scripts"
    """What was handed in, and the reports that quote it."""


_FILES = {
    Content.EVIDENCE: ("evidence.tar.gz",),
    Content.SCRIPTS: ("report.html", "report-staff.html", "evidence.tar.gz"),
}
_MARKS = {Content.EVIDENCE: DeletedContentRow.evidence_at, Content.SCRIPTS: DeletedContentRow.scripts_at}


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """For how many days after an attempt's end something is kept; None: for good."""

    evidence_days: int | None = None
    scripts_days: int | None = None

    @classmethod
    def of_site(cls, evidence_days: int, scripts_days: int) -> RetentionRule:
        """What the site's settings say; 0: for good.

        Raises:
            UsageError: a number is below 0.
        """
        if min(evidence_days, scripts_days) < 0:
            raise UsageError(
                "GRADER_EVIDENCE_DAYS and GRADER_SCRIPTS_DAYS are days, or 0 to keep things for good"
            )
        return cls(evidence_days or None, scripts_days or None)

    def within(self, site: RetentionRule) -> RetentionRule:
        """What holds in a course with this rule: never longer than the site's, and no evidence without scripts."""
        scripts = _shortest(self.scripts_days, site.scripts_days)
        return RetentionRule(_shortest(self.evidence_days, site.evidence_days, scripts), scripts)

    def days(self, content: Content) -> int | None:
        """For how many days this is kept."""
        return self.evidence_days if content is Content.EVIDENCE else self.scripts_days


@dataclass(frozen=True, slots=True)
class DueContent:
    """What a rule would delete of a course now, in attempts; `evidence_bytes` as they were stored."""

    num_evidence: int
    evidence_bytes: int
    num_scripts: int


@dataclass(frozen=True, slots=True)
class DeletedContent:
    """When what of an attempt was deleted; None: it is kept."""

    evidence_at: datetime | None = None
    scripts_at: datetime | None = None


def rule_of(store: Store, course_id: int) -> RetentionRule:
    """A course's own rule."""
    with store.read() as connection:
        return _rules(connection).get(course_id, RetentionRule())


def set_rule(store: Store, course_id: int, rule: RetentionRule, *, actor_id: int | None) -> None:
    """Keep things in this course for so long from now on."""
    days = {"evidence_days": rule.evidence_days, "scripts_days": rule.scripts_days}
    with store.write() as connection:
        values = {"course_id": course_id, **days}
        connection.execute(upsert(connection, RetentionRuleRow, ["course_id"], values, update=list(days)))
        audit(connection, f"course:{course_id}", "retention_set", actor_id=actor_id, **days)


def deleted_of(store: Store, attempt_id: int) -> DeletedContent:
    """What is deleted of an attempt."""
    with store.read() as connection:
        row = connection.execute(
            select(DeletedContentRow.evidence_at, DeletedContentRow.scripts_at).where(
                DeletedContentRow.attempt_id == attempt_id
            )
        ).one_or_none()
    return DeletedContent() if row is None else DeletedContent(*row)


def due_content(store: Store, course_id: int, rule: RetentionRule) -> DueContent:
    """What would be deleted of a course now, if this rule held there."""
    with store.read() as connection:
        evidence, size = connection.execute(
            select(func.count(AttemptRow.id.distinct()), func.coalesce(func.sum(ArtifactRow.size), 0))
            .select_from(AttemptRow)
            .outerjoin(
                ArtifactRow,
                and_(ArtifactRow.attempt_id == AttemptRow.id, ArtifactRow.name.in_(_FILES[Content.EVIDENCE])),
            )
            .where(_due(course_id, rule, Content.EVIDENCE))
        ).one()
        scripts = connection.execute(
            select(func.count(AttemptRow.id)).where(_due(course_id, rule, Content.SCRIPTS))
        ).scalar_one()
    return DueContent(evidence, int(size), scripts)


def rules(store: Store, site: RetentionRule) -> tuple[tuple[int, str, RetentionRule], ...]:
    """Number and title of each course in which something is not kept for good, with what holds there."""
    with store.read() as connection:
        own = _rules(connection)
        rows = connection.execute(select(CourseRow.id, CourseRow.title).order_by(CourseRow.id)).all()
    found = [(row.id, row.title, own.get(row.id, RetentionRule()).within(site)) for row in rows]
    return tuple(one for one in found if one[2] != RetentionRule())


def delete_due(store: Store, files: FileStore, site: RetentionRule, *, limit: int = BATCH) -> int:
    """Delete what is due, of at most so many attempts of each course and kind; of how many it was.

    Whatever crashes in between is done again by the next call: files go before what names them does.
    """
    done = 0
    for course_id, _, rule in rules(store, site):
        for content in Content:
            with store.write() as connection:
                ids = list(
                    connection.execute(
                        select(AttemptRow.id)
                        .where(_due(course_id, rule, content))
                        .order_by(AttemptRow.id)
                        .limit(limit)
                        .with_for_update(skip_locked=True)
                    ).scalars()
                )
                if ids:
                    _mark(connection, course_id, content, ids)
            if ids:
                _remove_files(store, files, content, ids)
            done += len(ids)
    return done


def _mark(connection: Connection, course_id: int, content: Content, ids: Sequence[int]) -> None:
    """Note what is deleted, and delete what lies in the database itself."""
    name = _MARKS[content].key
    for attempt_id in ids:
        values = {"attempt_id": attempt_id, name: database_now()}
        connection.execute(upsert(connection, DeletedContentRow, ["attempt_id"], values, update=[name]))
    if content is Content.EVIDENCE:
        # Their numbers have no gaps, so the events themselves stay.
        connection.execute(
            update(EventRow)
            .where(EventRow.attempt_id.in_(ids), EventRow.kind == "log")
            .values(data=_NO_OUTPUT)
        )
    else:
        _empty_sources(connection, ids)
    audit(connection, f"course:{course_id}", f"{content.value}_deleted", actor_id=None, number=len(ids))


def _empty_sources(connection: Connection, ids: Sequence[int]) -> None:
    """Empty the files that only such attempts judge: the very same script may be somebody else's, too."""
    digests = list(
        connection.execute(
            select(SourceRow.digest)
            .where(SourceRow.digest.in_(select(AttemptRow.digest).where(AttemptRow.id.in_(ids))))
            .order_by(SourceRow.digest)
            # Whoever hands the same in just now has this lock: their attempt is there once we have it.
            .with_for_update()
        ).scalars()
    )
    kept = (
        select(AttemptRow.id)
        .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
        .where(AttemptRow.digest == SourceRow.digest, DeletedContentRow.scripts_at.is_(None))
    )
    connection.execute(
        update(SourceRow).where(SourceRow.digest.in_(digests), ~kept.exists()).values(files=[], size=0)
    )


def _remove_files(store: Store, files: FileStore, content: Content, ids: Sequence[int]) -> None:
    mine = and_(ArtifactRow.attempt_id.in_(ids), ArtifactRow.name.in_(_FILES[content]))
    other = aliased(ArtifactRow)
    with store.read() as connection:
        digests = set(connection.execute(select(ArtifactRow.digest).where(mine)).scalars())
        used = set(
            connection.execute(
                select(other.digest).where(
                    other.digest.in_(digests),
                    or_(other.attempt_id.not_in(ids), other.name.not_in(_FILES[content])),
                )
            ).scalars()
        )
    for digest in sorted(digests - used):
        files.remove(digest)
    with store.write() as connection:
        connection.execute(delete(ArtifactRow).where(mine))


def _due(course_id: int, rule: RetentionRule, content: Content) -> ColumnElement[bool]:
    """Whether an attempt is one of that course whose content is past its days, and nobody waits for it."""
    days = rule.days(content)
    if days is None:
        return AttemptRow.id.is_(None)
    mark, artifact = aliased(DeletedContentRow), aliased(ArtifactRow)
    again, family, decision = aliased(AttemptRow), aliased(AttemptRow), aliased(OverrideRow)
    marked = select(mark.attempt_id).where(
        mark.attempt_id == AttemptRow.id, getattr(mark, _MARKS[content].key).is_not(None)
    )
    left = select(artifact.attempt_id).where(
        artifact.attempt_id == AttemptRow.id, artifact.name.in_(_FILES[content])
    )
    judged_again = select(again.id).where(
        func.coalesce(again.regrade_of, again.id) == func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
        again.state.in_([AttemptState.QUEUED, AttemptState.RUNNING]),
    )
    decided = (
        select(decision.id)
        .join(family, family.id == decision.attempt_id)
        .where(
            func.coalesce(family.regrade_of, family.id)
            == func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
            decision.withdrawn_at.is_(None),
        )
    )
    held = select(GradeRow.attempt_id).where(
        GradeRow.attempt_id == AttemptRow.id, GradeRow.verdict == Verdict.HELD, ~decided.exists()
    )
    asked = select(RegradeRequestRow.id).where(
        RegradeRequestRow.root_id == func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
        RegradeRequestRow.decided_at.is_(None),
    )
    return and_(
        AttemptRow.course_task_id.in_(select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)),
        AttemptRow.state.in_(FINAL),
        AttemptRow.finished_at < database_now(-days * _DAY_S),
        or_(~marked.exists(), left.exists()),
        ~judged_again.exists(),
        ~held.exists(),
        ~asked.exists(),
    )


def _rules(connection: Connection) -> dict[int, RetentionRule]:
    rows = connection.execute(
        select(RetentionRuleRow.course_id, RetentionRuleRow.evidence_days, RetentionRuleRow.scripts_days)
    )
    return {row.course_id: RetentionRule(row.evidence_days, row.scripts_days) for row in rows}


def _shortest(*days: int | None) -> int | None:
    return min((one for one in days if one is not None), default=None)
