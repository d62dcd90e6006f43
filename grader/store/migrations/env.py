"""Run by Alembic, on the connection that `grader.store.schema` hands over; opens none itself and reads no settings."""

from alembic import context

from grader.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite cannot change a column in place.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
