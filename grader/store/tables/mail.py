"""What people want mailed, and addresses that mail does not reach. No mail itself: those are deliveries."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, SafeString, one_of


class MailKind(StrEnum):
    """What mails are about, as people choose among them."""

    VERDICT = "verdict"
    HELD = "held"
    DECIDED = "decided"
    COMMENT = "comment"
    DATE = "date"
    ANNOUNCEMENT = "announcement"
    SUMMARY = "summary"
    """What waits for a course's staff, once a day."""


class MailChoiceRow(Base):
    """What somebody chose of a kind; where there is no row, its default holds."""

    __tablename__ = "mail_choices"

    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[MailKind] = mapped_column(one_of(MailKind), primary_key=True)
    wanted: Mapped[bool]


class BouncedAddressRow(Base):
    """An address that a mail server refused for good; nothing is sent there until its owner confirms it anew.

    Attributes:
        address: lower case; reason: the server's own words.
    """

    __tablename__ = "bounced_addresses"

    address: Mapped[str] = mapped_column(SafeString(254), primary_key=True)
    reason: Mapped[str] = mapped_column(SafeString(500))
    bounced_at: Mapped[datetime]
