"""Tokens of workers: one scope more."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_SCOPES = ("read", "submit", "verify", "manage")


def upgrade() -> None:
    """Let tokens have it."""
    _allow((*_SCOPES, "judge"))


def downgrade() -> None:
    """Drop the tokens that have it: they would open what they were not made for."""
    op.execute("DELETE FROM api_tokens WHERE scope = 'judge'")
    _allow(_SCOPES)


def _allow(scopes: tuple[str, ...]) -> None:
    name = op.f("ck_api_tokens_scope")
    with op.batch_alter_table("api_tokens") as table:
        if op.get_bind().dialect.name != "sqlite":
            # There the table is made anew, without any.
            table.drop_constraint(name, type_="check")
        table.create_check_constraint(name, f"scope IN ({', '.join(repr(one) for one in scopes)})")
