"""The time zone in which a course's staff writes dates; dates themselves stay UTC."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; all dates were written in UTC so far."""
    op.add_column("courses", sa.Column("time_zone", sa.String(64), nullable=True))


def downgrade() -> None:
    """Drop it: dates are written in UTC again."""
    op.drop_column("courses", "time_zone")
