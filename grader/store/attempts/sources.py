"""Keeping the files of submissions: once, however often and by whom they are handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from grader.model.submission import SourceFile
from grader.store.tables import SourceRow
from grader.store.upsert import upsert_statement


def keep_sources(connection: Connection, sources: Mapping[str, Sequence[SourceFile]]) -> None:
    """Keep these files, by the digests of their submissions."""
    # An update rather than nothing: it locks the row, so that no erasure takes these files from under us, and brings
    # back what a rule had deleted.
    connection.execute(
        upsert_statement(connection.dialect.name, SourceRow, ("digest",), ("files", "size")),
        [
            {
                "digest": digest,
                "files": [[file.path, file.text] for file in files],
                "size": sum(len(file.text) for file in files),
            }
            for digest, files in sorted(sources.items())
        ],
    )
