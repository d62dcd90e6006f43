"""What all tables share: names of constraints, and column types that hold the same on both databases.

Times are aware and UTC, texts may hold anything that a learner's script can print, JSON is text of plain ASCII.
Never holds a table itself.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from sqlalchemy import BigInteger, DateTime, Enum, Integer, MetaData, String, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, mapped_column
from sqlalchemy.types import TypeDecorator

_SURROGATES = dict.fromkeys(range(55296, 57344), "�")
_UNSTORABLE = {0: "\u2400", **_SURROGATES}


def storable(text: str) -> str:
    """The text with what PostgreSQL's UTF-8 cannot hold made visible: NUL as ␀, a lone surrogate as U+FFFD."""
    if "\0" not in text and text.isascii():
        return text
    return text.translate(_UNSTORABLE)


class UtcTime(TypeDecorator[datetime]):
    """An aware time, kept and given back as UTC; a naive one is refused.

    PostgreSQL keeps `timestamptz`; SQLite keeps text that sorts like the times it says.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """On its way in."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without its zone was to be stored; pass an aware one")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """On its way out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class SafeText(TypeDecorator[str]):
    """Text from outside; what a database would refuse is made visible on its way in (see `storable`)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """On its way in."""
        return None if value is None else storable(value)


class SafeString(TypeDecorator[str]):
    """Like `SafeText`, for short names: it has a length, and what is longer is cut."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """On its way in."""
        return None if value is None else storable(value)[: self._length]


class JsonText(TypeDecorator[Any]):
    """JSON as ASCII text: whatever Python's `json` writes comes back as it was, NUL and surrogates included."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """On its way in."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """On its way out."""
        return None if value is None else json.loads(value)


def one_of(kind: type[StrEnum]) -> Enum:
    """Column type that takes the values of an enumeration and nothing else, held by a CHECK."""
    return Enum(
        kind,
        native_enum=False,
        create_constraint=True,
        length=16,
        name=kind.__name__.lower(),
        values_callable=lambda members: [member.value for member in members],
    )


# SQLite numbers its rows by itself only in a column that is spelt INTEGER.
Id = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)]
Digest = Annotated[str, mapped_column(String(64))]
"""SHA-256, hex."""


class Base(DeclarativeBase):
    """Of all tables."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy under this very name
        int: BigInteger().with_variant(Integer, "sqlite"),
        datetime: UtcTime(),
        str: SafeText(),
    }
