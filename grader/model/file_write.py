"""What a rank did to files, apart from checkpoints: one record for each attempt."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.call_site import Site


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A file opened for writing, renamed, removed, or a folder made; `out`: below the output folder."""

    op: str
    path: str
    out: bool
    site: Site | None
    t: float
