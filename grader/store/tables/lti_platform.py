"""Learning platforms that launch us by LTI 1.3, and the links by which one registers itself. Holds no secret."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, JsonText, SafeString


class LtiPlatformRow(Base):
    """One platform: a Moodle, a Canvas, an ILIAS.

    Attributes:
        issuer, client_id: what it calls itself and us; together they name it.
        auth_url, token_url, jwks_url: where launches are authenticated, tokens are given, and its public keys lie.
        token_audience: whom our word for a token is addressed to; None: the token URL.
        deployments: ids of the places in it that may launch us.
        asked_deployment: one that launched us truly, and is not among them; None: nobody asked.
        link_by_address: whether a learner's account of the same mail address is taken for the same person's.
        make_courses: whether those who teach there may make courses here.
        disabled_at: when set, nothing is launched and nothing is told to it.
    """

    __tablename__ = "lti_platforms"
    __table_args__ = (UniqueConstraint("issuer", "client_id"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(SafeString(120))
    issuer: Mapped[str] = mapped_column(SafeString(255))
    client_id: Mapped[str] = mapped_column(SafeString(255))
    auth_url: Mapped[str]
    token_url: Mapped[str]
    jwks_url: Mapped[str]
    token_audience: Mapped[str | None]
    deployments: Mapped[list[str]] = mapped_column(JsonText())
    asked_deployment: Mapped[str | None]
    link_by_address: Mapped[bool] = mapped_column(default=False)
    make_courses: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class LtiRegistrationRow(Base):
    """A link by which one platform may register itself, once.

    Attributes:
        digest: SHA-256 of what the link holds; expires_at: when it ends unused.
        platform_id: whom it registered; None: nobody yet.
    """

    __tablename__ = "lti_registrations"

    digest: Mapped[Digest] = mapped_column(primary_key=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    platform_id: Mapped[int | None] = mapped_column(ForeignKey("lti_platforms.id", ondelete="CASCADE"))
