"""The truth of the service: people, courses, submissions, attempts and grades, in SQLite or PostgreSQL.

`tables/` says what is kept, `migrations/` how a database gets there; in the other rooms, and beside them, each module
holds the operations of one noun, and each operation is one transaction. A queue's message is only a hint: whatever is
lost or doubled outside of this room changes nothing in it. Never runs or judges anything, and knows no web page.
"""
