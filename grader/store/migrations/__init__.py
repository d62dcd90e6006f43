"""How a database gets to our tables, and back: Alembic's environment and one step per module."""
