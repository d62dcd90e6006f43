"""A token for programs: shown once, kept as a hash. Never holds the token itself."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, SafeString, one_of


class Scope(StrEnum):
    """What a token opens: each includes those before it, but `judge` alone, which workers have and nobody else."""

    READ = "read"
    SUBMIT = "submit"
    VERIFY = "verify"
    MANAGE = "manage"
    JUDGE = "judge"

    def includes(self, other: Scope) -> bool:
        """Whether a token of this scope opens what takes the other."""
        if Scope.JUDGE in (self, other):
            return self is other
        order = list(Scope)
        return order.index(self) >= order.index(other)


class ApiTokenRow(Base):
    """A token of one person.

    Attributes:
        token_hash: SHA-256 of the token, which is random enough to need no salt.
        prefix: first characters of the token, to tell several apart.
        expires_at, revoked_at: it opens nothing afterwards.
        used_at: last use, to the minute.
    """

    __tablename__ = "api_tokens"

    id: Mapped[Id]
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(SafeString(120))
    token_hash: Mapped[Digest] = mapped_column(unique=True)
    prefix: Mapped[str] = mapped_column(SafeString(16))
    scope: Mapped[Scope] = mapped_column(one_of(Scope))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]
