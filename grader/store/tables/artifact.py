"""Files that attempts left, and, where no shared folder is, their bytes."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, SafeString


class ArtifactRow(Base):
    """A file of an attempt under its name there; the bytes lie in the file store under `digest`."""

    __tablename__ = "artifacts"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(SafeString(200), primary_key=True)
    digest: Mapped[Digest] = mapped_column(index=True)
    size: Mapped[int]


class BlobRow(Base):
    """Bytes under their own SHA-256."""

    __tablename__ = "blobs"

    digest: Mapped[Digest] = mapped_column(primary_key=True)
    size: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
