"""A database gets to our tables and back with what it holds, and our tables are what the migrations make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import inspect, text

from grader.errors import UsageError
from grader.store import schema
from grader.store.database import Store
from grader.store.gradebook import gradebook
from grader.store.tables import Base
from tests.store.campus import Campus, verdict_of
from tests.store.conftest import Databases

ALL = schema.revisions()


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """A database that nobody else gets afterwards."""
    yield databases.open()
    databases.close()


Rows = dict[str, set[frozenset[tuple[str, str]]]]
"""Table → its rows, each as its columns' names and what stands there as text."""


def rows(store: Store) -> Rows:
    """Everything in a database."""
    with store.read() as connection:
        return {
            table: {
                frozenset((name, repr(value)) for name, value in row.items())
                for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
            }
            for table in inspect(connection).get_table_names()
            if table != "alembic_version"
        }


def columns(store: Store) -> dict[str, set[str]]:
    """Table → names of its columns."""
    with store.read() as connection:
        seen = inspect(connection)
        return {
            table: {column["name"] for column in seen.get_columns(table)}
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


def only(found: Rows, there: dict[str, set[str]]) -> Rows:
    """What of it has a place in these tables and columns."""
    return {
        table: {frozenset(cell for cell in row if cell[0] in names) for row in found[table]}
        for table, names in there.items()
    }


def shape(store: Store) -> dict[str, Any]:
    """Columns, keys, checks and indexes of every table, as the database tells them."""
    with store.read() as connection:
        seen = inspect(connection)
        return {
            table: {
                "columns": sorted(
                    (c["name"], str(c["type"]), c["nullable"], c["default"]) for c in seen.get_columns(table)
                ),
                "primary key": seen.get_pk_constraint(table)["constrained_columns"],
                "foreign keys": sorted(
                    (f["name"], f["constrained_columns"], f["referred_table"], str(f["options"]))
                    for f in seen.get_foreign_keys(table)
                ),
                "unique": sorted((u["name"], u["column_names"]) for u in seen.get_unique_constraints(table)),
                "checks": sorted((c["name"], c["sqltext"]) for c in seen.get_check_constraints(table)),
                "indexes": sorted(
                    (
                        i["name"],
                        i["column_names"],
                        i["unique"],
                        str(
                            {
                                k: str(v)
                                for k, v in i.get("dialect_options", {}).items()
                                if k.endswith("where")
                            }
                        ),
                    )
                    for i in seen.get_indexes(table)
                ),
            }
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


@pytest.fixture
def lived_in(campus: Campus) -> Store:
    """A database with something in it, standings that lateness, overrides and regrades have a part in included."""
    from datetime import UTC, datetime

    from grader.model.grade import Verdict
    from grader.store import regrades, reviews
    from grader.store.endings import finish
    from grader.store.queue import Host, report_worker
    from grader.store.tables.course_task import LatePolicy

    campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA002",)))
    first = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 70.0, ("GRAD001",)))
    overruled = campus.judge(campus.ben, grade=verdict_of(Verdict.REJECTED, 90.0))
    reviews.override(campus.store, overruled, Verdict.ACCEPTED, 95.0, "a fair approach", actor_id=campus.ines)
    reviews.comment(campus.store, overruled, "see line 3", author_id=campus.ines, path="train.py", line=3)
    batch = regrades.regrade(campus.store, [first], actor_id=campus.ines)
    again = campus.claim()
    finish(campus.store, again.attempt_id, again.lease_token, verdict_of(Verdict.REJECTED, 60.0))
    regrades.apply(campus.store, batch, actor_id=campus.ines)
    campus.set_task(late_policy=LatePolicy.REDUCED, late_loss=0.25, due_at=datetime(2020, 1, 1, tzinfo=UTC))
    campus.set_task(
        "ddp-late", late_policy=LatePolicy.ACCEPTED, late_loss=0.0, due_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    campus.queue(campus.ben, task=campus.task + 1)
    report_worker(campus.store, "w1", ["cpu"], 1, Host(num_gpus=2, num_containers=4))
    return campus.store


def test_migrations_make_our_tables(store: Store, databases: Databases) -> None:
    assert schema.differences(store) == []
    direct = databases.open(empty=True)
    with direct.write() as connection:
        Base.metadata.create_all(connection)
    assert shape(store) == shape(direct)


def test_differences_are_noticed(store: Store) -> None:
    with store.write() as connection:
        connection.execute(text("DROP INDEX ix_attempts_batch"))
        connection.execute(text("ALTER TABLE people ADD COLUMN nickname VARCHAR(10)"))
    assert len(schema.differences(store)) == 2


@pytest.mark.parametrize("revision", ALL[:-1])
def test_down_and_up_again_keeps_what_has_a_place(lived_in: Store, revision: str) -> None:
    before, all_columns = rows(lived_in), columns(lived_in)
    schema.downgrade(lived_in, revision)
    assert schema.status(lived_in).pending == ALL[ALL.index(revision) + 1 :]
    below, there = rows(lived_in), columns(lived_in)
    assert there != all_columns, "a step that takes nothing away is none"
    assert below == only(before, there), "a step down touched what stays"
    schema.upgrade(lived_in)
    assert columns(lived_in) == all_columns
    assert only(rows(lived_in), there) == below
    assert schema.differences(lived_in) == []


def test_standings_are_worked_out_by_their_migration(lived_in: Store) -> None:
    before = rows(lived_in)["standings"]
    assert len(before) == 2
    book = gradebook(lived_in, 1)
    schema.downgrade(lived_in, "0003")
    schema.upgrade(lived_in)
    assert rows(lived_in)["standings"] == before
    assert gradebook(lived_in, 1) == book


def test_to_nothing_and_back(lived_in: Store) -> None:
    schema.downgrade(lived_in, "base")
    assert rows(lived_in) == {}
    assert schema.status(lived_in).current is None
    schema.upgrade(lived_in)
    assert schema.status(lived_in).up_to_date
    assert not any(rows(lived_in).values())


def test_a_failed_step_leaves_everything_as_it_was(databases: Databases) -> None:
    store = databases.open(empty=True)
    schema.upgrade(store, ALL[0])
    with store.write() as connection:
        connection.execute(text("CREATE TABLE outbox (something INTEGER)"))
    with pytest.raises(Exception, match="outbox"):
        schema.upgrade(store)
    assert schema.status(store).current == ALL[0]
    assert "attempts" not in rows(store)
    with store.write() as connection:
        connection.execute(text("DROP TABLE outbox"))
    schema.upgrade(store)
    assert schema.status(store).up_to_date


def test_unknown_versions_are_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="9999"):
        schema.upgrade(store, "9999")
    assert schema.status(store).up_to_date


def test_references_hold_after_a_migration(lived_in: Store) -> None:
    from sqlalchemy.exc import IntegrityError

    schema.downgrade(lived_in, ALL[-2])
    schema.upgrade(lived_in)
    with pytest.raises(IntegrityError), lived_in.write() as connection:
        connection.execute(text("UPDATE attempts SET person_id = 424242"))
